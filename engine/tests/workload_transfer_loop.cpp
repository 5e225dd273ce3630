// Short transfers, end of file and errors, with a scripted backend.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "workload/transfer_loop.hpp"

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
