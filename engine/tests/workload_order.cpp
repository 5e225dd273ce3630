// Offsets of a phase: together the ranks cover every byte exactly once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "plan/plan.hpp"
#include "workload/order.hpp"

using namespace strakes;

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

// Counts how often each transfer of a file of `bytes` bytes is done.
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
    // of the others were used in between. Its probability is 1/8. With independent draws it is 1/2, less while the
    // cache adapts.
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
