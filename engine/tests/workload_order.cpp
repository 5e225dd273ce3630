// Orders and sizes of transfers, names and runs of items, and permutations.
#include <doctest/doctest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.hpp"
#include "support.hpp"
#include "workload/items.hpp"
#include "workload/order.hpp"
#include "workload/permutation.hpp"
#include "workload/transfer_loop.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

constexpr std::uint32_t kRanks = 3;

TransferPhase phase_of(Layout layout, Access access) {
    TransferPhase phase;
    phase.layout = layout;
    phase.access = access;
    phase.transfer_bytes = 8;
    phase.block_bytes = 40;
    phase.segments = 7;
    return phase;
}

// Counts how often each transfer of a file of `bytes` bytes occurs.
class Coverage {
  public:
    Coverage(std::uint64_t bytes, std::uint64_t transfer) : transfer_(transfer), times_(bytes / transfer) {}

    template <class Order>
    void add(Order order, std::uint64_t count) {
        order.restart(0);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t offset = order.next();
            REQUIRE(offset % transfer_ == 0);
            ++times_.at(offset / transfer_);
        }
    }
    [[nodiscard]] bool each(int times) const {
        return std::ranges::all_of(times_, [times](int n) { return n == times; });
    }
    [[nodiscard]] std::uint64_t covered() const {
        return static_cast<std::uint64_t>(std::ranges::count_if(times_, [](int n) { return n == 1; }));
    }

  private:
    std::uint64_t transfer_;
    std::vector<int> times_;
};

}  // namespace

TEST_CASE("in a shared file the ranks together cover every byte once") {
    for (const Access access : {Access::segmented, Access::strided}) {
        const TransferPhase phase = phase_of(Layout::shared_file, access);
        Coverage coverage(phase.bytes_per_rank() * kRanks, phase.transfer_bytes);
        for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
            const Region region = region_of(phase, kRanks, rank);
            coverage.add(InOrder(region), region.transfers);
        }
        CHECK(coverage.each(1));
    }
}

TEST_CASE("in random order the ranks together cover every byte of a shared file once") {
    const TransferPhase phase = phase_of(Layout::shared_file, Access::random);
    Coverage coverage(phase.bytes_per_rank() * kRanks, phase.transfer_bytes);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        const Region region = region_of(phase, kRanks, rank);
        coverage.add(Shuffled(region, Permutation(region.transfers, rank)), region.transfers);
    }
    CHECK(coverage.each(1));
}

TEST_CASE("a file per process is covered once by its rank") {
    for (const Access access : {Access::segmented, Access::random}) {
        const TransferPhase phase = phase_of(Layout::file_per_process, access);
        const Region region = region_of(phase, kRanks, 2);
        Coverage in_order(phase.bytes_per_rank(), phase.transfer_bytes);
        in_order.add(InOrder(region), region.transfers);
        CHECK(in_order.each(1));
        Coverage shuffled(phase.bytes_per_rank(), phase.transfer_bytes);
        shuffled.add(Shuffled(region, Permutation(region.transfers, 1)), region.transfers);
        CHECK(shuffled.each(1));
    }
}

TEST_CASE("with access whole every rank covers the whole shared file") {
    const TransferPhase phase = phase_of(Layout::shared_file, Access::whole);
    Coverage coverage(phase.bytes_per_rank() * kRanks, phase.transfer_bytes);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        const Region region = region_of(phase, kRanks, rank);
        coverage.add(InOrder(region), region.transfers);
    }
    CHECK(coverage.each(kRanks));
}

TEST_CASE("strided access places one block of every rank in turn") {
    const TransferPhase phase = phase_of(Layout::shared_file, Access::strided);
    InOrder order(region_of(phase, kRanks, 1));
    for (const std::uint64_t expected : {40U, 48U, 56U, 64U, 72U, 160U, 168U}) CHECK(order.next() == expected);
}

TEST_CASE("data written partly and at random are read in another order, and no other data are accessed") {
    const TransferPhase phase = phase_of(Layout::file_per_process, Access::random);
    const Region region = region_of(phase, kRanks, 0);
    const Permutation as_written(region.transfers, 4);
    constexpr std::uint64_t kWritten = 20;
    Coverage written(phase.bytes_per_rank(), phase.transfer_bytes);
    written.add(Shuffled(region, as_written), kWritten);
    CHECK(written.covered() == kWritten);
    Coverage both = written;
    both.add(Shuffled(region, Permutation(kWritten, 9), as_written), kWritten);
    CHECK(both.covered() == 0);  // each transfer twice
}

TEST_CASE("an order that is restarted begins with its first offset") {
    InOrder order(region_of(phase_of(Layout::shared_file, Access::strided), kRanks, 2));
    const std::uint64_t first = order.next();
    for (int i = 0; i < 11; ++i) order.next();
    order.restart(0);
    CHECK(order.next() == first);
}

namespace {

// Return the hit rate of an LRU cache of `capacity` transfers after the first pass.
template <class Order>
double share_of_hits(Order order, std::uint64_t count, std::uint64_t passes, std::size_t capacity) {
    std::list<std::uint64_t> recent;
    std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> where;
    std::uint64_t hits = 0;
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
        order.restart(pass);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t offset = order.next();
            if (const auto known = where.find(offset); known != where.end()) {
                hits += pass > 0 ? 1 : 0;
                recent.erase(known->second);
            }
            recent.push_front(offset);
            where[offset] = recent.begin();
            if (recent.size() > capacity) {
                where.erase(recent.back());
                recent.pop_back();
            }
        }
    }
    return static_cast<double>(hits) / static_cast<double>(count * (passes - 1));
}

}  // namespace

TEST_CASE("a cache of half the file has the expected hit rate for shuffled passes and for independent draws") {
    constexpr std::uint64_t kPlaces = 4000;
    const Region region{
        .base = 0, .run_bytes = kPlaces * 8, .stride = kPlaces * 8, .transfer_bytes = 8, .transfers = kPlaces};
    // If each pass is shuffled anew, the transfer at position x of one pass and y of the next hits if fewer than half
    // of the others were used in between. The probability of a hit is 1/8. With independent draws it is 1/2, or less
    // while the cache adapts.
    const double shuffled = share_of_hits(Shuffled(region, Permutation(kPlaces, 3)), kPlaces, 6, kPlaces / 2);
    CHECK(shuffled > 0.09);
    CHECK(shuffled < 0.16);
    const double drawn = share_of_hits(Drawn(region, 3), kPlaces, 6, kPlaces / 2);
    CHECK(drawn > 0.46);
    CHECK(drawn < 0.54);
}

TEST_CASE("every pass in random order has each transfer once") {
    const TransferPhase phase = phase_of(Layout::file_per_process, Access::random);
    const Region region = region_of(phase, kRanks, 0);
    Shuffled order(region, Permutation(region.transfers, 4));
    std::vector<std::vector<std::uint64_t>> passes(3);
    for (std::uint64_t pass = 0; pass < 3; ++pass) {
        order.restart(pass);
        for (std::uint64_t i = 0; i < region.transfers; ++i) passes[pass].push_back(order.next());
    }
    CHECK(passes[0] != passes[1]);
    CHECK(passes[1] != passes[2]);
    for (auto& pass : passes) std::ranges::sort(pass);
    CHECK(passes[0] == passes[1]);
    CHECK(passes[1] == passes[2]);
    CHECK(std::ranges::adjacent_find(passes[0]) == passes[0].end());
}

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
    // A random order has about one pair of consecutive neighbours, and about one value in common with another order.
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

TEST_CASE("sizes are drawn with their probabilities, and a seed gives the same sizes again") {
    const std::vector<SizeShare> shares = {
        {.bytes = 4096, .percent = 60}, {.bytes = 512, .percent = 3}, {.bytes = 65536, .percent = 37}};
    constexpr std::uint64_t kCalls = 20000;
    for (const std::uint64_t key : {1U, 2U, 99U}) {
        std::map<std::uint64_t, std::uint64_t> counts;
        for (std::uint64_t call = 0; call < kCalls; ++call) ++counts[size_of_call(shares, key, call, 65536)];
        CHECK(counts.size() == 3);
        for (const SizeShare& share : shares) {
            const double part = share.percent / 100.0;
            const double deviation = std::sqrt(kCalls * part * (1 - part));
            CHECK(std::abs(static_cast<double>(counts[share.bytes]) - kCalls * part) < 4.5 * deviation);
        }
        CHECK(size_of_call(shares, key, 7, 65536) == size_of_call(shares, key, 7, 65536));
    }
    CHECK(size_of_call({}, 1, 0, 8192) == 8192);
}

TEST_CASE("a mixed phase uses its sizes for reads and writes, and the data remain correct") {
    Stage stage(1, {transfer("w", "write", {{"segments", 64}}),
                    transfer("m", "mixed",
                             {{"segments", 64},
                              {"read_percent", 50},
                              {"verify", true},
                              {"access", "random"},
                              {"read_sizes", Json::array({{{"bytes", 1000}, {"percent", 100}}})},
                              {"write_sizes",
                               Json::array({{{"bytes", 100}, {"percent", 50}}, {{"bytes", 4096}, {"percent", 50}}})}}),
                    transfer("r", "read", {{"segments", 64}, {"verify", true}})});
    REQUIRE_FALSE(stage.run(0).front().failure);
    const std::vector<RankResult> results = stage.run(1);
    const RankResult& mixed = results.front();
    REQUIRE_FALSE(mixed.failure);
    const std::uint64_t reads = mixed.verified_bytes / 1000;
    CHECK(mixed.verified_bytes % 1000 == 0);
    CHECK(reads > mixed.operations * 4 / 10);
    CHECK(reads < mixed.operations * 6 / 10);
    const auto writes = static_cast<double>(mixed.operations - reads);
    const double average = static_cast<double>(mixed.bytes - mixed.verified_bytes) / writes;
    CHECK(std::abs(average - 2098) < 4.5 * 1998 / std::sqrt(writes));
    CHECK_FALSE(stage.run(2).front().failure);
}

TEST_CASE("only the first ranks have files if the others do not write, and the others read nothing") {
    Stage stage(3, {transfer("w", "write", {{"layout", "file-per-process"}, {"first_ranks", 1}}),
                    transfer("r", "read", {{"layout", "file-per-process"}, {"verify", true}})});
    const std::vector<RankResult> written = stage.run(0);
    for (const RankResult& result : written) CHECK_FALSE(result.failure);
    CHECK(written[0].bytes > 0);
    CHECK(written[1].operations == 0);
    CHECK(fs::exists(stage.path() / "data.0.data"));
    CHECK_FALSE(fs::exists(stage.path() / "data.1.data"));
    const std::vector<RankResult> read = stage.run(1);
    CHECK(read[0].bytes == written[0].bytes);
    CHECK(read[2].operations == 0);
    for (const RankResult& result : read) CHECK_FALSE(result.failure);
}
