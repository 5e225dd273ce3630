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

// Orders: restart(pass) begins a pass over the transfers, of which the first is 0; next() then gives where each of them
// is, at most as often as the rank has transfers.
//
// The transfers from the first to the last.
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

// The transfers of one contiguous run in seeded order, another one in each pass: what was read longest ago is not what
// comes next, as it is in no application. `outer` decides the order, `inner` (identity unless given) which
// transfers there are: the first `count` of an order in which they were written.
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

// Transfers drawn one by one, each whatever the others were: some come twice before others come at all. Which of them
// are the likely ones is a seeded order, too, so that they lie anywhere.
class Drawn {
  public:
    Drawn(const Region& region, Access access, std::uint64_t key) noexcept
        : region_(region), scatter_(region.transfers, mix(key)), draw_(access), key_(key) {
        if (access == Access::zipf) prepare_zipf();
    }
    static constexpr void restart(std::uint64_t /*pass*/) noexcept {}
    std::uint64_t next() noexcept { return region_.base + scatter_(place()) * region_.transfer_bytes; }

    // As fio has them unless told otherwise: the exponent of zipf, and h of pareto: a share h of the places has 1 - h
    // of the draws.
    static constexpr double kZipf = 1.2;
    static constexpr double kPareto = 0.2;
    // Of the hot spot: a fifth of the places, which has four fifths of the draws.
    static constexpr std::uint64_t kHotPlaces = 20, kHotDraws = 80;

  private:
    [[nodiscard]] std::uint64_t bits() noexcept { return mix(key_ + ++drawn_); }
    [[nodiscard]] double unit() noexcept { return static_cast<double>(bits() >> 11U) * 0x1p-53; }
    [[nodiscard]] std::uint64_t below(std::uint64_t range) noexcept {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint64_t>((static_cast<Wide>(bits()) * range) >> 64U);
    }
    // 0 is the likeliest.
    [[nodiscard]] std::uint64_t place() noexcept;
    void prepare_zipf() noexcept;
    [[nodiscard]] std::uint64_t zipf() noexcept;

    Region region_;
    Permutation scatter_;
    Access draw_;
    std::uint64_t key_, drawn_ = 0;
    double zipf_low_ = 0, zipf_high_ = 0, zipf_skip_ = 0;
};

}  // namespace strakes
