// What all ranks find out together inside a timed section.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "team/exchange.hpp"

namespace strakes {

using Numbers = std::array<std::uint64_t, 3>;

// Of each number the most that any rank says, for all ranks: every one of them calls it, whatever has gone wrong there.
// In as many steps as their number has binary digits.
Numbers most_of_all(Exchange& exchange, Exchange::Rank mine, Numbers numbers);

}  // namespace strakes
