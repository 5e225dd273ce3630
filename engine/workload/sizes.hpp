// Sizes of calls, drawn from a given distribution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plan/transfer_phase.hpp"
#include "workload/permutation.hpp"

namespace strakes {

// Return the size of call `number`, or `most` if `shares` is empty.
inline std::size_t size_of_call(std::span<const SizeShare> shares, std::uint64_t key, std::uint64_t number,
                                std::size_t most) noexcept {
    if (shares.empty()) return most;
    std::uint64_t drawn = mix(mix(key + 3) + number) % 100;
    for (const SizeShare& share : shares) {
        if (drawn < share.percent) return static_cast<std::size_t>(share.bytes);
        drawn -= share.percent;
    }
    return static_cast<std::size_t>(shares.back().bytes);
}

}  // namespace strakes
