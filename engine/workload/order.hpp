// Where a rank's transfers lie in the file, and in which order they are done.
#pragma once

#include <cstdint>

#include "plan/plan.hpp"
#include "workload/permutation.hpp"

namespace strakes {

// Runs of contiguous bytes, `stride` from one start to the next.
struct Region {
    std::uint64_t base = 0;
    std::uint64_t run_bytes = 0;
    std::uint64_t stride = 0;
    std::uint64_t transfer_bytes = 0;
    std::uint64_t transfers = 0;
};

// What the rank at `place` of the `sharers` of a file has in it; with access whole, the whole file. With random-whole
// only the amount counts: where it lies is decided by an order over what was written.
inline Region region_of(const TransferPhase& phase, std::uint32_t sharers, std::uint32_t place) noexcept {
    const std::uint64_t per_rank = phase.bytes_per_rank();
    const std::uint64_t transfer = phase.transfer_bytes;
    const auto contiguous = [transfer](std::uint64_t base, std::uint64_t bytes) {
        return Region{.base = base,
                      .run_bytes = bytes,
                      .stride = bytes,
                      .transfer_bytes = transfer,
                      .transfers = bytes / transfer};
    };
    if (phase.layout == Layout::file_per_process) return contiguous(0, per_rank);
    if (phase.access == Access::whole) return contiguous(0, per_rank * sharers);
    if (phase.access == Access::random_whole) return contiguous(0, per_rank);
    if (phase.access != Access::strided) return contiguous(per_rank * place, per_rank);
    return {.base = phase.block_bytes * place,
            .run_bytes = phase.block_bytes,
            .stride = phase.block_bytes * sharers,
            .transfer_bytes = transfer,
            .transfers = per_rank / transfer};
}

// The transfers from the first to the last; next() at most `transfers` times after restart().
class InOrder {
  public:
    explicit constexpr InOrder(const Region& region) noexcept : region_(region) { restart(); }
    constexpr void restart() noexcept {
        at_ = region_.base;
        run_end_ = region_.base + region_.run_bytes;
    }
    constexpr std::uint64_t next() noexcept {
        const std::uint64_t offset = at_;
        at_ += region_.transfer_bytes;
        if (at_ == run_end_) {
            at_ += region_.stride - region_.run_bytes;
            run_end_ += region_.stride;
        }
        return offset;
    }

  private:
    Region region_;
    std::uint64_t at_ = 0, run_end_ = 0;
};

// The transfers of one contiguous run in seeded order: `outer` decides the order, `inner` (identity unless given) which
// transfers there are: the first `count` of an order in which they were written.
class Shuffled {
  public:
    constexpr Shuffled(const Region& region, const Permutation& outer) noexcept
        : region_(region), outer_(outer), inner_(outer) {}
    constexpr Shuffled(const Region& region, const Permutation& outer, const Permutation& inner) noexcept
        : region_(region), outer_(outer), inner_(inner), composed_(true) {}
    constexpr void restart() noexcept { index_ = 0; }
    constexpr std::uint64_t next() noexcept {
        std::uint64_t transfer = outer_(index_++);
        if (composed_) transfer = inner_(transfer);
        return region_.base + transfer * region_.transfer_bytes;
    }

  private:
    Region region_;
    Permutation outer_, inner_;
    bool composed_ = false;
    std::uint64_t index_ = 0;
};

}  // namespace strakes
