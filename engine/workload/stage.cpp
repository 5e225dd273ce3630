// Delivers one whole file to every rank. Readers copy it piece by piece into memory that the ranks of a node share.
// Reader j of every node has the pieces j, j + readers, ... (a column). With broadcast, the nodes divide the pieces of
// a column among them and exchange them. Without readers, every rank reads the file itself.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/posix.hpp"
#include "data/pattern.hpp"
#include "system/buffer.hpp"
#include "system/descriptor.hpp"
#include "workload/plan_state.hpp"
#include "workload/transfer_file.hpp"
#include "workload/transfer_loop.hpp"
#include "workload/workload.hpp"

namespace strakes {

namespace {

constexpr std::size_t kLine = 64, kPage = 4096;
constexpr long kLookEveryNs = 20'000;
constexpr int kLooks = 1000;  // Number of polls before the first sleep.

using Ranks = std::vector<std::uint32_t>;

struct Readers {
    std::vector<Ranks> nodes;  // ranks by node
    std::size_t node = 0;      // node of this rank
    std::size_t place = 0;     // place of this rank in its node
    std::size_t columns = 0;   // number of readers of this node; with broadcast the same on every node

    [[nodiscard]] bool reads() const noexcept { return place < columns; }
    // Return the number of readers on all nodes, at most `most` on each.
    [[nodiscard]] std::uint32_t of_all(std::size_t most) const noexcept {
        std::size_t count = 0;
        for (const Ranks& node : nodes) count += std::min(most, node.size());
        return static_cast<std::uint32_t>(count);
    }
};

Readers readers_of(const StagePhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t rank) {
    Readers readers;
    for (std::uint32_t other = 0; other < nodes.size(); ++other) {
        if (nodes[other] >= readers.nodes.size()) readers.nodes.resize(nodes[other] + 1);
        readers.nodes[nodes[other]].push_back(other);
    }
    readers.node = nodes[rank];
    const Ranks& mine = readers.nodes[readers.node];
    readers.place = static_cast<std::size_t>(std::ranges::lower_bound(mine, rank) - mine.begin());
    readers.columns = std::min<std::size_t>(phase.readers_per_node, mine.size());
    if (phase.broadcast)
        for (const Ranks& node : readers.nodes) readers.columns = std::min(readers.columns, node.size());
    return readers;
}

class Stage final : public Workload {
  public:
    Stage(const PhaseSetting& setting, const Seat& seat)
        : setting_(setting),
          seat_(seat),
          phase_(std::get<StagePhase>(setting.phase())),
          set_(setting.state.data.at(phase_.files)),
          ages_(set_.ages_of_all()),
          file_(setting, *set_.written, 0, seat.rank),
          readers_(readers_of(phase_, seat.exchange->nodes(), seat.rank)),
          size_(set_.written->bytes_per_rank() * setting.plan.ranks),
          pieces_((size_ + phase_.transfer_bytes - 1) / phase_.transfer_bytes) {}

    Outcome lead() override {
        const std::uint64_t all = set_.written->bytes_per_rank() / set_.written->transfer_bytes;
        if (std::ranges::all_of(set_.done, [all](std::uint64_t done) { return done == all; })) return std::nullopt;
        return Failure{.what = "the file '" + phase_.files + "' was not written to the end",
                       .why = "its write phase ended early",
                       .remedy = "Give the write phase the rule amount."};
    }

    Outcome prepare(RankResult& result) override {
        seat_.progress.at("preparing");
        Outcome failure = make_memory();
        if (!failure && seat_.leads_node) failure = look_at_cache(result);
        return failure;
    }

    void run(RankResult& result) override {
        const Clock& clock = setting_.clock;
        result.start = result.end = clock.now();
        const std::size_t most = phase_.broadcast ? readers_.columns : phase_.readers_per_node;
        pace_ = setting_.pace(result.start, alone() ? setting_.plan.ranks : readers_.of_all(most));
        if (alone() || readers_.reads()) read(result);
        if (!alone() && !result.failure) use_all(result);
        result.end = clock.now();
    }

    void finish(RankResult& result) override {
        seat_.progress.at("closing");
        descriptor_ = Descriptor();
        if (!alone()) seat_.exchange->settle();
        buffer_ = Buffer();
        if (!seat_.leads_node) return;
        Outcome failure = file_.look(false, result.cache, &CacheState::resident_after_bytes);
        if (failure && !result.failure) result.failure = std::move(failure);
    }

  private:
    [[nodiscard]] bool alone() const noexcept { return phase_.readers_per_node == 0; }
    [[nodiscard]] Content content() const noexcept {
        return {.stream = stream_of(setting_.plan.seed, setting_.plan.salt, std::uint64_t{set_.number} << 32U),
                .compressible_percent = set_.written->compressible_percent,
                .duplicate_percent = set_.written->duplicate_percent,
                .age = ages_.newest,
                .oldest = ages_.oldest};
    }
    [[nodiscard]] std::size_t header_bytes() const noexcept {
        return (readers_.columns * kLine + kPage - 1) / kPage * kPage;
    }
    [[nodiscard]] std::uint64_t bytes_of(std::uint64_t piece) const noexcept {
        return std::min(phase_.transfer_bytes, size_ - piece * phase_.transfer_bytes);
    }
    [[nodiscard]] std::span<std::byte> place_of(std::uint64_t piece) const noexcept {
        return memory_.subspan(header_bytes() + piece * phase_.transfer_bytes, bytes_of(piece));
    }
    // Return the number of available pieces of a column. Other processes also change this number.
    [[nodiscard]] std::atomic_ref<std::uint64_t> there(std::size_t column) const noexcept {
        return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(memory_.data() + column * kLine));
    }

    Outcome make_memory() {
        const std::uint64_t bytes = alone() ? std::min(phase_.transfer_bytes, size_) : header_bytes() + size_;
        if (alone()) {
            Outcome failure = setting_.make(buffer_, bytes);
            memory_ = buffer_.bytes();
            return failure;
        }
        memory_ = seat_.exchange->node_memory(bytes);
        if (!memory_.empty()) return std::nullopt;
        Failure failure = call_failure("mmap", "", ENOMEM);
        failure.what = "there is no memory for " + std::to_string(bytes) + " bytes";
        return failure;
    }

    Outcome look_at_cache(RankResult& result) {
        if (phase_.cache == Cache::drop_system)
            if (const int error = drop_system_caches(setting_.root); error != 0)
                return call_failure("drop_caches", "", error);
        return file_.look(phase_.cache != Cache::as_is, result.cache, &CacheState::resident_before_bytes);
    }

    void read(RankResult& result) {
        seat_.progress.at("opening");
        const std::uint64_t before = setting_.clock.now();
        result.failure = file_.open(O_RDONLY, descriptor_);
        result.open = elapsed(before, setting_.clock.now());
        if (result.failure) return;
        seat_.progress.at("reading");
        if (alone())
            read_alone(result);
        else if (phase_.broadcast)
            read_and_tell(result);
        else
            read_column(result);
    }

    bool read_piece(std::uint64_t piece, std::span<std::byte> into, RankResult& result) {
        const Clock& clock = setting_.clock;
        LoopEnd end{.reading = true, .offset = piece * phase_.transfer_bytes};
        const std::uint64_t before = clock.now();
        end.error = move_all<Posix>(true, descriptor_.get(), into, end.offset);
        const std::uint64_t now = clock.now();
        const std::uint64_t took = elapsed(before, now);
        if (end.error != 0) {
            result.failure = describe(end, file_.path());
            return false;
        }
        seat_.latencies.calls.record(clock.to_ns(took));
        result.slowest = std::max(result.slowest, took);
        result.read_bytes += into.size();
        seat_.progress.publish(++result.operations, result.bytes);
        if (pace_.on())
            static_cast<void>(pace_.hold(now, {.operations = 1, .bytes = into.size(), .ticks = took}, result.held_ns));
        return true;
    }

    bool use(std::uint64_t piece, std::span<const std::byte> bytes, RankResult& result) {
        if (phase_.verify) {
            LoopEnd end{.reading = true, .offset = piece * phase_.transfer_bytes};
            end.mismatch = verify(bytes, content(), end.offset);
            if (end.mismatch) {
                result.failure = describe(end, file_.path());
                return false;
            }
            result.verified_bytes += bytes.size();
        }
        result.bytes += bytes.size();
        seat_.progress.publish(result.operations, result.bytes);
        return true;
    }

    void read_alone(RankResult& result) {
        for (std::uint64_t piece = 0; piece < pieces_ && !setting_.halted(); ++piece) {
            const std::span<std::byte> bytes = memory_.first(bytes_of(piece));
            if (!read_piece(piece, bytes, result) || !use(piece, bytes, result)) return;
        }
    }

    void read_column(RankResult& result) {
        std::uint64_t read = 0;
        for (std::uint64_t piece = readers_.place; piece < pieces_; piece += readers_.columns) {
            if (setting_.halted() || !read_piece(piece, place_of(piece), result)) return;
            there(readers_.place).store(++read, std::memory_order_release);
        }
    }

    // Read the column in rounds of one piece per node. Each node reads its piece and broadcasts it to the others.
    void read_and_tell(RankResult& result) {
        const std::size_t nodes = readers_.nodes.size();
        const auto piece_of = [&](std::uint64_t number) { return readers_.place + number * readers_.columns; };
        for (std::uint64_t number = 0; piece_of(number) < pieces_; number += nodes) {
            const std::uint64_t mine = piece_of(number + readers_.node);
            if (setting_.halted() || (mine < pieces_ && !read_piece(mine, place_of(mine), result))) return;
            for (std::size_t root = 0; root < nodes && piece_of(number + root) < pieces_; ++root) {
                seat_.progress.at(kWaiting);
                if (!tell(root, place_of(piece_of(number + root)))) return;
                seat_.progress.at("reading");
                there(readers_.place).store(number + root + 1, std::memory_order_release);
            }
        }
    }

    bool tell(std::size_t root, std::span<std::byte> bytes) const {
        const std::size_t nodes = readers_.nodes.size();
        Ranks group;
        group.reserve(nodes);
        for (std::size_t i = 0; i < nodes; ++i) group.push_back(readers_.nodes[(root + i) % nodes][readers_.place]);
        return broadcast(*seat_.exchange, group, (readers_.node + nodes - root) % nodes, bytes, setting_.halt);
    }

    void use_all(RankResult& result) {
        for (std::uint64_t piece = 0; piece < pieces_; ++piece) {
            const std::atomic_ref<std::uint64_t> ready = there(piece % readers_.columns);
            seat_.progress.at(kWaiting);
            for (int looks = 0; ready.load(std::memory_order_acquire) <= piece / readers_.columns; ++looks) {
                if (setting_.halted()) return;
                if (looks < kLooks) {
                    ::sched_yield();
                    continue;
                }
                const timespec time{.tv_sec = 0, .tv_nsec = kLookEveryNs};
                ::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
            }
            seat_.progress.at("verifying");
            if (!use(piece, place_of(piece), result)) return;
        }
    }

    const PhaseSetting& setting_;
    Seat seat_;
    const StagePhase& phase_;
    const DataSet& set_;
    Ages ages_;
    TransferFile<Posix> file_;
    Readers readers_;
    std::uint64_t size_, pieces_;
    Buffer buffer_;
    std::span<std::byte> memory_;
    Descriptor descriptor_;
    Pace pace_;
};

}  // namespace

std::unique_ptr<Workload> make_stage(const PhaseSetting& setting, const Seat& seat) {
    return std::make_unique<Stage>(setting, seat);
}

}  // namespace strakes
