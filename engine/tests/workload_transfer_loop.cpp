// Short transfers, end of file and errors, with a scripted backend. Times of submissions, with a ring that completes
// each request immediately.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/pattern.hpp"
#include "workload/order.hpp"
#include "workload/transfer_loop.hpp"
#include "workload/transfer_queue.hpp"

using namespace strakes;

namespace {

// Moves at most `most` bytes per call of a file of `size` bytes, and fails from offset `fails_at` on.
struct Script {
    std::size_t most = SIZE_MAX;
    std::uint64_t size = UINT64_MAX;
    std::uint64_t fails_at = UINT64_MAX;
    int calls = 0;
};
thread_local Script script;

struct Scripted {
    struct Moved {
        std::size_t bytes;
        int error;
    };
    static Moved move(std::size_t bytes, std::uint64_t offset) {
        ++script.calls;
        if (offset >= script.fails_at) return {0, EIO};
        const std::uint64_t left = offset < script.size ? script.size - offset : 0;
        return {std::min({bytes, script.most, static_cast<std::size_t>(left)}), 0};
    }
    static Moved read_at(int, std::byte*, std::size_t bytes, std::uint64_t offset) { return move(bytes, offset); }
    static Moved write_at(int, const std::byte*, std::size_t bytes, std::uint64_t offset) {
        return move(bytes, offset);
    }
};

struct Outcome {
    int error;
    std::uint64_t offset;
};

Outcome move(bool reading, const Script& as) {
    script = as;
    std::array<std::byte, 100> buffer{};
    std::uint64_t offset = 1000;
    const int error = move_all<Scripted>(reading, 0, buffer, offset);
    return {error, offset};
}

}  // namespace

TEST_CASE("a whole transfer is one call") {
    CHECK(move(true, {}).error == 0);
    CHECK(script.calls == 1);
}

TEST_CASE("short transfers are continued until all bytes are moved") {
    for (const bool reading : {true, false}) {
        CHECK(move(reading, {.most = 30}).error == 0);
        CHECK(script.calls == 4);
    }
}

TEST_CASE("a read that meets the end of the file reports its offset") {
    const Outcome outcome = move(true, {.size = 1070});
    CHECK(outcome.error == LoopEnd::kEndOfFile);
    CHECK(outcome.offset == 1070);
}

TEST_CASE("an error after a short transfer reports its offset") {
    const Outcome outcome = move(false, {.most = 40, .fails_at = 1080});
    CHECK(outcome.error == EIO);
    CHECK(outcome.offset == 1080);
}

TEST_CASE("failures of transfers have all their fields") {
    LoopEnd end;
    end.reading = true;
    end.error = EIO;
    end.offset = 4096;
    const Failure broken = describe(end, "p/data.0.data");
    CHECK(broken.what == "read failed");
    CHECK(broken.error_name == "EIO");
    CHECK(broken.offset_bytes == 4096);
    CHECK_FALSE(broken.remedy.empty());
    end.error = EAGAIN;
    CHECK(describe(end, "p/data.0.data").remedy == broken.remedy);
    CHECK(call_failure("pthread_create", "", EAGAIN).remedy.find("ulimit -u") != std::string::npos);
    end.mismatch = Mismatch{.offset_bytes = 4100, .expected = std::byte{0x0a}, .found = std::byte{0xff}};
    const Failure wrong = describe(end, "p/data.0.data");
    CHECK(wrong.why == "expected byte 0x0a, found 0xff");
    CHECK(wrong.offset_bytes == 4100);
    CHECK_FALSE(wrong.remedy.empty());
    const Failure handing_over = describe({.failed = true, .call = "io_uring_enter", .error = ENXIO}, "p/data.0.data");
    CHECK(handing_over.what == "io_uring_enter failed");
    CHECK(handing_over.operation == "io_uring_enter");
    CHECK(handing_over.path == "p/data.0.data");
    CHECK_FALSE(handing_over.offset_bytes);
}

namespace {

constexpr std::uint32_t kDepth = 8;
constexpr std::size_t kLarge = std::size_t{64} * 1024;
constexpr std::uint64_t kRound = kDepth;

class ScriptedRing {
  public:
    struct Request {
        std::uint64_t offset = 0, begun = 0;
        std::size_t done = 0;
        bool reading = false;
    };

    explicit ScriptedRing(std::span<std::byte> buffer) : buffer_(buffer), requests_(kDepth) {
        for (std::uint32_t slot = 0; slot < kDepth; ++slot) free_.push_back(kDepth - 1 - slot);
    }

    ScriptedRing& ring() noexcept { return *this; }
    Request& request(std::uint32_t slot) noexcept { return requests_[slot]; }
    [[nodiscard]] std::span<std::byte> buffer(std::uint32_t slot) const noexcept {
        const std::size_t bytes = buffer_.size() / kDepth;
        return buffer_.subspan(slot * bytes, bytes);
    }
    std::vector<std::uint32_t>& free_slots() noexcept { return free_; }
    [[nodiscard]] std::uint32_t under_way() const noexcept { return kDepth - static_cast<std::uint32_t>(free_.size()); }
    void push(std::uint32_t slot) { filled_in_.push_back(slot); }
    void submit() { hand_over(); }
    int submit_and_wait() {
        hand_over();
        return 0;
    }
    void stop() noexcept {}
    template <class Done>
    void reap(Done done) {
        const std::vector<std::uint32_t> complete = std::move(given_);
        given_.clear();
        for (const std::uint32_t slot : complete) {
            begun.push_back(requests_[slot].begun);
            done(slot, static_cast<int>(buffer(slot).size()));
        }
    }

    std::vector<std::size_t> handed_over;  // number of requests in each submission
    std::vector<std::uint64_t> begun;      // start of each transfer
    std::vector<bool> right;               // whether its data were correct on submission
    Content content;

  private:
    void hand_over() {
        if (!filled_in_.empty()) handed_over.push_back(filled_in_.size());
        for (const std::uint32_t slot : filled_in_) {
            right.push_back(!verify(buffer(slot), content, requests_[slot].offset));
            given_.push_back(slot);
        }
        filled_in_.clear();
    }

    std::span<std::byte> buffer_;
    std::vector<Request> requests_;
    std::vector<std::uint32_t> free_, filled_in_, given_;
};

struct Ran {
    LoopEnd end;
    RankResult result;
    ScriptedRing file;
};

Ran run(std::size_t transfer_bytes, bool stamp, std::uint64_t transfers) {
    std::vector<std::byte> buffer(kDepth * transfer_bytes);
    const Content content{.stream = stream_of(1, 2, 3)};
    Ran ran{.end = {}, .result = {}, .file = ScriptedRing(buffer)};
    ran.file.content = content;
    Plan plan;
    PlanState state(plan);
    const std::string name = "run";
    const std::atomic<Halt> halt{Halt::none};
    const PhaseSetting setting{
        .plan = plan, .index = 0, .state = state, .root = -1, .name = name, .clock = Clock::system(), .halt = halt};
    Progress progress;
    Latencies latencies;
    const Seat seat{.rank = 0, .progress = progress, .latencies = latencies};
    const LoopSetting loop{.setting = setting,
                           .seat = seat,
                           .buffer = buffer,
                           .content = content,
                           .found = content,
                           .ages_a_pass = 1,
                           .count = transfers,
                           .read_percent = 0,
                           .choice_key = 0,
                           .read_sizes = {},
                           .write_sizes = {},
                           .stamp = stamp,
                           .verify = false,
                           .repeat = false,
                           .deadline = UINT64_MAX,
                           .pace = {},
                           .wear_out = nullptr};
    const Region region{.run_bytes = transfers * transfer_bytes,
                        .stride = transfers * transfer_bytes,
                        .transfer_bytes = transfer_bytes,
                        .transfers = transfers};
    ran.end = QueuedLoop<ScriptedRing, InOrder>(loop, ran.file, InOrder(region), ran.result).run();
    CHECK(latencies.calls.count() == transfers);
    return ran;
}

}  // namespace

TEST_CASE("large transfers are in flight while the next ones are stamped, and each has its own start time") {
    const Ran ran = run(kLarge, true, 2 * kRound + 3);
    CHECK(ran.file.handed_over == std::vector<std::size_t>(2 * kRound + 3, 1));
    CHECK(ran.file.right == std::vector<bool>(2 * kRound + 3, true));
    CHECK(ran.result.operations == 2 * kRound + 3);
    CHECK(ran.result.queue_depth == kDepth);
    CHECK(ran.result.data > 0);
    for (std::size_t i = 1; i < ran.file.begun.size(); ++i) CHECK(ran.file.begun[i - 1] < ran.file.begun[i]);
}

TEST_CASE("small transfers, and those that are not stamped, are submitted together") {
    const Ran small = run(4096, true, 2 * kRound);
    CHECK(small.file.handed_over == std::vector<std::size_t>{kDepth, kDepth});
    CHECK(small.file.right == std::vector<bool>(2 * kRound, true));
    CHECK(small.file.begun.front() == small.file.begun[kDepth - 1]);
    const Ran plain = run(kLarge, false, 2 * kRound);
    CHECK(plain.file.handed_over == std::vector<std::size_t>{kDepth, kDepth});
    CHECK(plain.result.data == 0);
}
