// What processes tell each other while a plan runs: small values of fixed size, over connections of their own. Ranks
// talk to the leader of their node, and leaders to the first process, so that what it hears grows with nodes only.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace strakes {

inline constexpr std::uint32_t kNobody = UINT32_MAX;

using StageText = std::array<char, 44>;
using FailureText = std::array<char, 128>;

// The text up to its first zero.
template <class Text>
[[nodiscard]] std::string_view view_of(const Text& text) noexcept {
    const std::string_view all(text.data(), text.size());
    return all.substr(0, all.find('\0'));
}

// From a rank: once a second, and when something has happened.
struct Beat {
    std::uint64_t plan = 0;  // number of the plan in this session; 0 while none runs
    std::uint64_t operations = 0;
    std::uint64_t bytes = 0;
    std::uint32_t phase = 0;            // that runs, from 1; 0: its part of the plan is over
    std::uint32_t finished_phases = 0;  // with their timed section
    std::uint8_t finished = 0;          // with the timed section of the phase that runs
    std::uint8_t halt = 0;
    std::uint8_t signalled = 0;  // it was told to end
    std::uint8_t leaving = 0;    // its last word
    StageText stage{};
    FailureText failure{};  // why this process cannot go on; empty while it can
};
static_assert(sizeof(Beat) == 208);

// How a process was lost.
enum class Loss : std::uint8_t { none, ended, silent, failed };

// From the leader of a node: all that ranks there have come to, in one.
struct NodeBeat {
    static constexpr std::size_t kMostSilent = 8;

    std::uint64_t plan = 0;
    std::uint64_t operations = 0;  // of all ranks there that are in the phase
    std::uint64_t bytes = 0;
    std::uint64_t slowest_operations = 0;
    std::uint32_t phase = 0;  // the latest that any of them is in; 0: for all of them the plan is over
    std::uint32_t finished_phases = 0;
    std::uint32_t finished_ranks = 0;
    std::uint32_t waiting_ranks = 0;
    std::uint32_t slowest = kNobody;  // rank of the plan that is furthest behind, and what it is at
    std::uint32_t lost = kNobody;     // rank of those started that cannot go on, and how it was lost
    Loss loss = Loss::none;
    std::uint8_t halt = 0;
    std::uint8_t signalled = 0;
    std::uint8_t leaving = 0;
    std::uint8_t slowest_silent = 0;
    std::uint8_t slowest_waiting = 0;
    std::uint8_t silent_ranks = 0;  // as many as are named
    std::uint8_t unused = 0;
    std::array<std::uint32_t, kMostSilent> silent{};  // ranks of those started: the first of them
    StageText stage{};
    FailureText failure{};
    std::uint32_t unused_too = 0;
};
static_assert(sizeof(NodeBeat) == 272);

// From the first process to all others, leaders pass it on: everything that holds now, so that saying it twice does no
// harm.
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
