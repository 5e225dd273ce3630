// Offsets of a phase: together the ranks cover every byte exactly once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
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

// How often each transfer of a file of `bytes` bytes is done.
class Coverage {
  public:
    Coverage(std::uint64_t bytes, std::uint64_t transfer) : transfer_(transfer), times_(bytes / transfer) {}

    template <class Order>
    void add(Order order, std::uint64_t count) {
        order.restart();
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

TEST_CASE("strided puts one block of every rank in turn") {
    const TransferPhase phase = phase_of(Layout::shared_file, Access::strided);
    InOrder order(region_of(phase, kRanks, 1));
    for (const std::uint64_t expected : {40U, 48U, 56U, 64U, 72U, 160U, 168U}) CHECK(order.next() == expected);
}

TEST_CASE("what was written in part at random is read in another order, and nothing else is touched") {
    const TransferPhase phase = phase_of(Layout::file_per_process, Access::random);
    const Region region = region_of(phase, kRanks, 0);
    const Permutation as_written(region.transfers, 4);
    constexpr std::uint64_t kWritten = 20;
    Coverage written(phase.bytes_per_rank(), phase.transfer_bytes);
    written.add(Shuffled(region, as_written), kWritten);
    CHECK(written.covered() == kWritten);
    Coverage both = written;
    both.add(Shuffled(region, Permutation(kWritten, 9), as_written), kWritten);
    CHECK(both.covered() == 0);  // each of them twice
}

TEST_CASE("an order that is started again begins at its beginning") {
    InOrder order(region_of(phase_of(Layout::shared_file, Access::strided), kRanks, 2));
    const std::uint64_t first = order.next();
    for (int i = 0; i < 11; ++i) order.next();
    order.restart();
    CHECK(order.next() == first);
}
