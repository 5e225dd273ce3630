// Flag that ranks check before each operation and while they wait for each other.
#pragma once

#include <cstdint>

namespace strakes {

enum class Halt : std::uint8_t { none, cancel, error };

}  // namespace strakes
