// What all ranks look at before they begin another operation, and while they wait for one another.
#pragma once

#include <cstdint>

namespace strakes {

enum class Halt : std::uint8_t { none, cancel, error };

}  // namespace strakes
