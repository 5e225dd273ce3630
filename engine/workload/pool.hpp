// Properties of a small file that follow from its number: initial size, directory and data. They are not stored.
#pragma once

#include <cstdint>

#include "data/pattern.hpp"
#include "plan/plan.hpp"
#include "workload/permutation.hpp"

namespace strakes {

// Map 32 or 64 random bits to 0 .. range-1 by multiplication (Lemire, Fast Random Integer Generation in an Interval,
// 2019, without the rejection step). The relative bias is at most range / 2^32 or range / 2^64.
constexpr std::uint64_t scaled32(std::uint64_t bits, std::uint64_t range) noexcept { return (bits * range) >> 32U; }
constexpr std::uint64_t scaled(std::uint64_t bits, std::uint64_t range) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits) * range) >> 64U);
}

class PoolRule {
  public:
    PoolRule(const SmallFilesPhase& phase, const Plan& plan, std::uint32_t number, std::uint32_t owner) noexcept
        : low_(phase.size_low_bytes),
          range_(phase.size_high_bytes - phase.size_low_bytes + 1),
          directories_(phase.subdirectories == 0 ? 1 : phase.subdirectories),
          seed_(plan.seed),
          salt_(plan.salt),
          key_(mix(mix(mix(mix(plan.seed) + 1) + number) + owner)) {}

    [[nodiscard]] std::uint64_t size_of(std::uint64_t item) const noexcept {
        return low_ + scaled32(mix(key_ + item) & UINT32_MAX, range_);
    }
    [[nodiscard]] std::uint32_t directory_of(std::uint64_t item) const noexcept {
        return static_cast<std::uint32_t>(scaled32(mix(key_ + item) >> 32U, directories_));
    }
    [[nodiscard]] Stream stream_of(std::uint64_t item) const noexcept {
        return strakes::stream_of(seed_, salt_, mix(key_ + item));
    }
    // Return the key of the random choices in a phase.
    [[nodiscard]] std::uint64_t key_of_phase(std::size_t index) const noexcept { return mix(key_ ^ mix(index + 1)); }

  private:
    std::uint64_t low_, range_, directories_;
    std::uint32_t seed_;
    std::uint64_t salt_;
    std::uint64_t key_;
};

}  // namespace strakes
