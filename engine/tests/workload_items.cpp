// Items: their ranges, directories and names.
#include <doctest/doctest.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "workload/items.hpp"

using strakes::ItemName;
using strakes::ItemPath;
using strakes::ItemRun;
using strakes::Items;
using strakes::runs_of;

namespace {

// The index of every item in the runs, in order.
std::vector<std::uint64_t> indices(const std::vector<ItemRun>& runs) {
    std::vector<std::uint64_t> all;
    for (const ItemRun& run : runs)
        for (std::uint64_t i = 0; i < run.count; ++i) all.push_back(run.first + i);
    return all;
}

}  // namespace

TEST_CASE("items are distributed evenly over the leaves, each once") {
    for (const std::uint64_t total : {1U, 3U, 7U, 100U, 101U}) {
        for (const std::uint32_t leaves : {1U, 2U, 7U, 64U}) {
            const auto runs = runs_of({.first = 0, .last = total, .rename_ends = {}}, total, leaves);
            const auto all = indices(runs);
            REQUIRE(all.size() == total);
            for (std::uint64_t i = 0; i < total; ++i) CHECK(all[i] == i);
            for (const ItemRun& run : runs) {
                CHECK(run.leaf < leaves);
                CHECK(run.count <= total / leaves + 1);
                CHECK(run.count >= total / leaves);
            }
        }
    }
}

TEST_CASE("an item stays in its leaf if the first or the last ones are missing") {
    constexpr std::uint64_t kTotal = 50;
    constexpr std::uint32_t kLeaves = 7;
    std::vector<std::uint32_t> leaf_of(kTotal);
    for (const ItemRun& run : runs_of({.first = 0, .last = kTotal, .rename_ends = {}}, kTotal, kLeaves))
        for (std::uint64_t i = 0; i < run.count; ++i) leaf_of[run.first + i] = run.leaf;
    for (std::uint64_t first = 0; first <= kTotal; ++first) {
        for (const ItemRun& run :
             runs_of({.first = first, .last = kTotal - first / 2, .rename_ends = {}}, kTotal, kLeaves))
            for (std::uint64_t i = 0; i < run.count; ++i) CHECK(leaf_of[run.first + i] == run.leaf);
    }
}

TEST_CASE("without items there are no runs") {
    CHECK(runs_of({.first = 0, .last = 0, .rename_ends = {}}, 10, 2).empty());
    CHECK(runs_of({.first = 10, .last = 10, .rename_ends = {}}, 10, 2).empty());
}

TEST_CASE("after renames that ended early, the name of each item is known") {
    const Items items{.first = 2, .last = 10, .rename_ends = {8, 5}};
    std::vector<bool> renamed(10);
    for (const ItemRun& run : runs_of(items, 10, 3))
        for (std::uint64_t i = 0; i < run.count; ++i) renamed[run.first + i] = run.renamed;
    // Items below 5 were renamed twice, items below 8 once.
    CHECK(renamed == std::vector<bool>{false, false, false, false, false, true, true, true, false, false});
}

TEST_CASE("a name is incremented in place, and is unique for owner and index") {
    std::set<std::string> seen;
    for (std::uint32_t owner = 0; owner < 12; ++owner) {
        ItemName name(false, owner, 100);
        name.set(0, false);
        for (int i = 0; i < 100; ++i, name.next()) CHECK(seen.insert(name.c_str()).second);
    }
    CHECK(seen.contains("f0.000"));
    CHECK(seen.contains("f11.099"));
}

TEST_CASE("a name can be set again after it was incremented past the last item") {
    ItemName name(true, 7, 10);
    name.set(9, false);
    name.next();
    name.set(3, false);
    CHECK(std::string(name.c_str()) == "d7.03");
}

TEST_CASE("a renamed item has another letter, and a second rename restores the first one") {
    ItemName name(true, 1, 5);
    name.set(4, false);
    CHECK(std::string(name.toggled().c_str()) == "e1.4");
    name.set(4, true);
    CHECK(std::string(name.c_str()) == "e1.4");
    CHECK(std::string(name.toggled().c_str()) == "d1.4");
}

TEST_CASE("the longest name fits") {
    ItemName name(false, 65535, std::uint64_t{1} << 30U);
    name.set((std::uint64_t{1} << 30U) - 1, false);
    CHECK(std::string(name.c_str()) == "f65535.1073741823");
}

TEST_CASE("a path combines the directory entered last and the name") {
    ItemPath path(ItemName(true, 1, 50));
    path.enter("/scratch/items.tree/b0");
    path.set(8, false);
    CHECK(std::string(path.c_str()) == "/scratch/items.tree/b0/d1.08");
    path.next();
    CHECK(std::string(path.c_str()) == "/scratch/items.tree/b0/d1.09");
    CHECK(std::string(path.toggled().c_str()) == "/scratch/items.tree/b0/e1.09");
    path.enter("/s");
    path.set(10, true);
    CHECK(std::string(path.c_str()) == "/s/e1.10");
    CHECK(std::string(path.item().c_str()) == "e1.10");
}

TEST_CASE("a path in a cleared buffer is followed by zeros, not by the rest of a longer one") {
    ItemPath path(ItemName(false, 3, 10), true);
    path.enter("/scratch/items.tree");
    path.set(7, false);
    CHECK(std::string(path.c_str()) == "/scratch/items.tree/f3.07");
    path.enter("/s");
    path.next();
    CHECK(std::string(path.c_str()) == "/s/f3.08");
    const char* const rest = path.c_str() + std::string(path.c_str()).size();
    CHECK(std::all_of(rest, path.c_str() + PATH_MAX, [](char one) { return one == 0; }));
}

TEST_CASE("a directory fits only if the longest name in it does") {
    CHECK(ItemPath::fits("/"));
    CHECK_FALSE(ItemPath::fits(""));
    CHECK(ItemPath::fits("/" + std::string(PATH_MAX - 2 - ItemName::kRoom, 'x')));
    CHECK_FALSE(ItemPath::fits("/" + std::string(PATH_MAX - 1 - ItemName::kRoom, 'x')));
}
