// Rows by second add up to the work between the first look and the last.
#include <doctest/doctest.h>

#include <cstdint>

#include "measure/second_rows.hpp"

using strakes::SecondRow;
using strakes::SecondRows;

TEST_CASE("rows are one second apart, contain the work in between, and belong to one phase") {
    constexpr std::uint64_t kHalf = 500'000'000;
    SecondRows seconds;
    for (std::uint64_t look = 1; look <= 9; ++look) seconds.look(1, look * kHalf, look * 100, look * 10);
    const auto rows = seconds.take(1);
    REQUIRE(rows.size() == 4);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        CHECK(rows[i].took_ns == 2 * kHalf);
        CHECK(rows[i].end_ns == (2 * i + 3) * kHalf);
        CHECK(rows[i].operations == 20);
        bytes += rows[i].bytes;
    }
    CHECK(bytes == 800);
    CHECK(seconds.take(1).empty());
    seconds.look(2, kHalf, 1, 1);
    seconds.look(2, 3 * kHalf, 5, 2);
    CHECK(seconds.take(1).empty());
    const auto second = seconds.take(2);
    REQUIRE(second.size() == 1);
    CHECK(second[0].bytes == 4);
}

TEST_CASE("rows of a long phase become longer, their number stays limited, and no work is lost") {
    constexpr std::size_t kMost = 8;
    constexpr std::uint64_t kSecond = 1'000'000'000;
    SecondRows seconds(kMost);
    for (std::uint64_t second = 0; second <= 100; ++second) seconds.look(1, second * kSecond, 10 * second, second);
    const auto rows = seconds.take(1);
    CHECK(rows.size() <= kMost);
    CHECK(rows.size() >= kMost / 2);
    std::uint64_t end_ns = 0, bytes = 0, operations = 0;
    for (const auto& row : rows) {
        CHECK(row.end_ns == end_ns + row.took_ns);
        CHECK(row.bytes == 10 * row.operations);
        end_ns = row.end_ns;
        bytes += row.bytes;
        operations += row.operations;
    }
    CHECK(bytes == 10 * operations);
    CHECK(operations == end_ns / kSecond);
    CHECK(end_ns > 80 * kSecond);
    CHECK(SecondRows::most_of(1) >= 3600);
    CHECK(SecondRows::most_of(500) * 500 <= 60'000);
}
