// Latencies by second: every call is in one row, and the number of rows is limited.
#include "workload/latency_rows.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "plan/plan.hpp"
#include "system/bytes.hpp"

using namespace strakes;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t calls_of(const LatencyRows::Row& row, std::uint8_t kind = Latencies::kCalls) {
    std::uint64_t sum = 0;
    for (const auto& [key, calls] : row) sum += key.first == kind ? calls : 0;
    return sum;
}

std::uint64_t calls_of(const LatencyRows& rows, std::uint8_t kind = Latencies::kCalls) {
    std::uint64_t sum = 0;
    for (const auto& [number, row] : rows.rows()) sum += calls_of(row, kind);
    return sum;
}

// Rows of a phase of `seconds` seconds with 100 calls of `ns` nanoseconds each second.
LatencyRows rows_of(std::uint64_t seconds, std::uint64_t ns, std::size_t most_rows) {
    LatencyRows rows(most_rows);
    Latencies before;
    for (std::uint64_t second = 0; second < seconds; ++second) {
        Latencies after;
        after.merge(before);
        for (int call = 0; call < 100; ++call) after.calls.record(ns);
        rows.add(second * kSecond, (second + 1) * kSecond, before, after);
        before = std::move(after);
    }
    return rows;
}

}  // namespace

TEST_CASE("calls are in the row of the look that finds them, and a call is counted once") {
    const Phase phase = MetadataPhase();
    LatencyWatch watch(0, 2, 1);
    watch.begin(phase, 7 * kSecond);
    for (int second = 0; second < 3; ++second) {
        for (int call = 0; call <= second; ++call) watch.of(0).calls.record(1000);
        watch.of(1).calls.record(50);
        watch.look(8 * kSecond + second * kSecond);
    }
    watch.look(10 * kSecond + 1);  // too soon after the last look
    watch.of(1).calls.record(50);
    watch.end(10 * kSecond + kSecond / 2);
    const auto parts = watch.take();
    REQUIRE(parts.size() == 1);
    const auto& rows = parts.front().rows();
    REQUIRE(rows.size() == 4);
    for (std::uint64_t second = 0; second < 3; ++second) CHECK(calls_of(rows.at(second)) == second + 2);
    CHECK(rows.at(0).at({Latencies::kCalls, Histogram::bucket_of(1000)}) == 1);
    CHECK(calls_of(rows.at(3)) == 1);
    CHECK(watch.take().empty());
    watch.of(0).calls.record(1000);
    watch.look(20 * kSecond);  // no phase runs
    CHECK(watch.take().empty());
}

TEST_CASE("calls that are recorded during a look are counted once") {
    constexpr std::uint64_t kCalls = 20'000;
    const Phase phase = MetadataPhase();
    LatencyWatch watch(0, 2, 1);
    std::atomic<int> working = 2;
    watch.begin(phase, 0);
    const auto work = [&](std::uint32_t rank) {
        for (std::uint64_t call = 0; call < kCalls; ++call) watch.of(rank).calls.record(call);
        --working;
    };
    std::thread first(work, 0), second(work, 1);
    std::uint64_t now_ns = 0;
    while (working > 0) watch.look(now_ns += kSecond / 2);
    first.join();
    second.join();
    watch.end(now_ns + kSecond);
    const auto parts = watch.take();
    REQUIRE(parts.size() == 1);
    CHECK(calls_of(parts.front()) == 2 * kCalls);
}

TEST_CASE("a phase shorter than a row has no rows, and each part of a mixed phase has its own") {
    const Phase metadata = MetadataPhase();
    LatencyWatch watch(0, 3, 1);
    watch.begin(metadata, kSecond);
    watch.of(0).calls.record(1000);
    watch.end(kSecond + 1000);
    CHECK(watch.take().empty());

    MixedPhase mixed;
    mixed.part_ranks = {1, 2};
    const Phase phase = mixed;
    watch.begin(phase, 0);
    watch.of(1).calls.record(1000);
    watch.of(2).waits = std::make_unique<Histogram>();
    watch.of(2).waits->record(1000);
    watch.end(2 * kSecond);
    const auto parts = watch.take();
    REQUIRE(parts.size() == 2);
    CHECK(calls_of(parts[0]) == 1);  // left from the previous phase, because each rank clears its own
    CHECK(calls_of(parts[1]) == 1);
    CHECK(calls_of(parts[1], Latencies::kWaits) == 1);
}

TEST_CASE("rows of a long phase become longer, their number stays limited, and no call is lost") {
    const LatencyRows rows = rows_of(1000, 500, 60);
    CHECK(rows.rows().size() <= 60);
    CHECK(rows.rows().size() > 30);
    CHECK(rows.row_ns() == 32 * kSecond);
    CHECK(calls_of(rows) == 100'000);
    CHECK(calls_of(rows.rows().begin()->second) == 3200);
    CHECK(LatencyRows::most_of(1) == 600);
    CHECK(LatencyRows::most_of(10'000) == 60);
}

TEST_CASE("rows of several processes are merged, also with different row lengths, and survive serialisation") {
    LatencyRows rows = rows_of(3, 500, 60);
    Packer packer;
    rows_of(100, 900, 60).pack(packer);
    const std::string bytes = packer.take();
    Unpacker unpacker(bytes);
    LatencyRows other;
    other.unpack(unpacker);
    CHECK(unpacker.at_end());
    rows.merge(std::move(other));
    CHECK(rows.row_ns() == 2 * kSecond);
    CHECK(calls_of(rows) == 10'300);
    CHECK(calls_of(rows.rows().at(0)) == 400);
    CHECK(calls_of(rows.rows().at(1)) == 300);
    CHECK(calls_of(rows.rows().at(49)) == 200);
    CHECK(rows.rows().at(0).at({Latencies::kCalls, Histogram::bucket_of(500)}) == 200);
}
