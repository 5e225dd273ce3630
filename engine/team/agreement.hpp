// All-reduce among all ranks inside a timed section.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "team/exchange.hpp"

namespace strakes {

using Numbers = std::array<std::uint64_t, 3>;

// Return the maximum of each number over all ranks. Every rank must call it, even after an error. Takes
// ceil(log2(ranks)) steps.
Numbers most_of_all(Exchange& exchange, Exchange::Rank mine, Numbers numbers);

}  // namespace strakes
