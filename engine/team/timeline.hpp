// Common time of all ranks of a plan: nanoseconds on the clock of rank 0's node.
#pragma once

#include <cstdint>

#include "measure/clock.hpp"

namespace strakes {

struct Timeline {
    Clock clock = Clock::system();  // of this node
    std::int64_t offset_ns = 0;     // rank 0's clock minus this one

    [[nodiscard]] std::uint64_t at(std::uint64_t ticks) const noexcept {
        return clock.to_ns(ticks) + static_cast<std::uint64_t>(offset_ns);
    }
    [[nodiscard]] std::uint64_t now() const noexcept { return at(clock.now()); }
};

}  // namespace strakes
