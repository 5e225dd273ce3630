// What processes tell each other while a plan runs: small values of fixed size, over a connection of their own.
#pragma once

#include <array>
#include <cstdint>

namespace strakes {

// From a process to the first one: once a second, and when something has happened.
struct Beat {
    std::uint64_t plan = 0;  // number of the plan in this session; 0 while none runs
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
    std::uint32_t phase = 0;            // that runs, from 1
    std::uint32_t finished_phases = 0;  // with their timed section
    std::uint8_t finished = 0;          // with the timed section of the phase that runs
    std::uint8_t halt = 0;
    std::uint8_t signalled = 0;  // it was told to end
    std::uint8_t leaving = 0;    // its last word
    std::array<char, 44> stage{};
    std::array<char, 128> failure{};  // why this process cannot go on; empty while it can
};
static_assert(sizeof(Beat) == 208);

// From the first process to all others: everything that holds now, so that saying it twice does no harm.
struct Order {
    std::uint64_t plan = 0;
    std::uint32_t glimpse_phases = 0;  // note what was done when the first rank finished these
    std::uint8_t halt = 0;
    std::uint8_t abandon = 0;  // end at once
    std::uint8_t leave = 0;    // end in order: there will be no further plan
    std::uint8_t unused = 0;
};
static_assert(sizeof(Order) == 16);

}  // namespace strakes
