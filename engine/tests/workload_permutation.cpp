// Seeded permutation: each index once, a different order for every key, and memory independent of the size.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "workload/permutation.hpp"

using strakes::Permutation;

TEST_CASE("every index comes once, for every size") {
    for (std::uint64_t size = 1; size < 600; ++size) {
        const Permutation order(size, size * 17);
        std::vector<bool> seen(size);
        for (std::uint64_t i = 0; i < size; ++i) {
            const std::uint64_t at = order(i);
            REQUIRE(at < size);
            REQUIRE_FALSE(seen[at]);
            seen[at] = true;
        }
    }
}

TEST_CASE("every index comes once for a million indices") {
    constexpr std::uint64_t kSize = 1'000'003;
    const Permutation order(kSize, 5);
    std::vector<bool> seen(kSize);
    for (std::uint64_t i = 0; i < kSize; ++i) seen[order(i)] = true;
    CHECK(std::ranges::count(seen, false) == 0);
}

TEST_CASE("the order has few consecutive neighbours, and another key gives another order") {
    constexpr std::uint64_t kSize = 100'000;
    const Permutation one(kSize, 1);
    const Permutation two(kSize, 2);
    int sequential = 0;
    int equal = 0;
    for (std::uint64_t i = 1; i < kSize; ++i) {
        sequential += one(i) == one(i - 1) + 1 ? 1 : 0;
        equal += one(i) == two(i) ? 1 : 0;
    }
    // A random order has about one of each.
    CHECK(sequential < 10);
    CHECK(equal < 10);
}

TEST_CASE("the first half of the order is spread over the whole range") {
    constexpr std::uint64_t kSize = 1U << 16U;
    const Permutation order(kSize, 99);
    std::uint64_t below = 0;
    for (std::uint64_t i = 0; i < kSize / 2; ++i) below += order(i) < kSize / 2 ? 1 : 0;
    CHECK(below > kSize / 4 - 1000);
    CHECK(below < kSize / 4 + 1000);
}

TEST_CASE("sizes near the maximum neither overflow nor hang") {
    for (const std::uint64_t size : {std::uint64_t{1} << 50U, (std::uint64_t{1} << 62U) + 1}) {
        const Permutation order(size, 3);
        for (std::uint64_t i = 0; i < 1000; ++i) CHECK(order(i) < size);
    }
}
