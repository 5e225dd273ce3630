// Positions of a rank's transfers in a file, and their order.
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

// Return the region of the rank at `place` among the `sharers` of a file. With access whole, the region is the whole
// file. With random-whole, only its size is used: the transfers are chosen from all that was written.
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

// Orders of transfers: restart(pass) begins a pass, counted from 0, and next() returns the offset of the next transfer.
// next() is called at most once for each transfer of the rank in a pass.

class InOrder {
  public:
    explicit constexpr InOrder(const Region& region) noexcept : region_(region) { restart(0); }
    constexpr void restart(std::uint64_t /*pass*/) noexcept {
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

// The transfers of one contiguous run in the seeded order `outer`, which differs from pass to pass: otherwise the next
// transfer would always be the least recently read one. If only some transfers were written, `inner` is the order of
// writing, and `outer` permutes the positions in this order.
class Shuffled {
  public:
    constexpr Shuffled(const Region& region, const Permutation& outer) noexcept
        : region_(region), first_(outer), outer_(outer), inner_(outer) {}
    constexpr Shuffled(const Region& region, const Permutation& outer, const Permutation& inner) noexcept
        : region_(region), first_(outer), outer_(outer), inner_(inner), composed_(true) {}
    constexpr void restart(std::uint64_t pass) noexcept {
        index_ = 0;
        outer_ = pass == 0 ? first_ : first_.again(pass);
    }
    constexpr std::uint64_t next() noexcept {
        std::uint64_t transfer = outer_(index_++);
        if (composed_) transfer = inner_(transfer);
        return region_.base + transfer * region_.transfer_bytes;
    }

  private:
    Region region_;
    Permutation first_, outer_, inner_;
    bool composed_ = false;
    std::uint64_t index_ = 0;
};

// Transfers drawn independently, with replacement, so that some transfers repeat before others occur.
class Drawn {
  public:
    Drawn(const Region& region, std::uint64_t key) noexcept
        : region_(region), scatter_(region.transfers, mix(key)), key_(key) {}
    static constexpr void restart(std::uint64_t /*pass*/) noexcept {}
    std::uint64_t next() noexcept {
        __extension__ using Wide = unsigned __int128;
        const Wide place = (static_cast<Wide>(mix(key_ + ++drawn_)) * region_.transfers) >> 64U;
        return region_.base + scatter_(static_cast<std::uint64_t>(place)) * region_.transfer_bytes;
    }

  private:
    Region region_;
    Permutation scatter_;  // spreads the drawn numbers over the file
    std::uint64_t key_, drawn_ = 0;
};

}  // namespace strakes
