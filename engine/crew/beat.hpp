// Control messages between processes while a plan runs. They have a fixed size and do not use MPI. Ranks send messages
// to the leader of their node, and leaders to the first process. So the number of connections of the first process
// grows only with the number of nodes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace strakes {

inline constexpr std::uint32_t kNobody = UINT32_MAX;

using StageText = std::array<char, 48>;
using FailureText = std::array<char, 128>;

template <class Text>
[[nodiscard]] std::string_view view_of(const Text& text) noexcept {
    const std::string_view all(text.data(), text.size());
    return all.substr(0, all.find('\0'));
}

enum class Loss : std::uint8_t { none, ended, silent, failed };

// Heartbeat of a rank, or of a node's leader with sums and extremes over the node's ranks. Sent once a second, and at
// every event that other processes must know.
struct Beat {
    static constexpr std::size_t kMostSilent = 8;

    std::uint64_t plan = 0;        // number of the plan in this session; 0 while no plan runs
    std::uint64_t operations = 0;  // sum of the operations of all ranks in the phase
    std::uint64_t bytes = 0;
    std::uint64_t slowest_operations = 0;
    std::uint32_t phase = 0;           // latest phase of any rank, from 1; 0: all ranks have finished the plan
    std::uint32_t finished_ranks = 0;  // ranks whose timed section of the phase is over
    std::uint32_t waiting_ranks = 0;
    std::uint32_t slowest = kNobody;  // the rank of the plan that is furthest behind; `stage` is its stage
    std::uint32_t lost = kNobody;     // number of the lost rank among all processes
    Loss loss = Loss::none;
    std::uint8_t halt = 0;
    std::uint8_t signalled = 0;  // a process received a signal to end
    std::uint8_t leaving = 0;    // the process ends normally: no further beat follows
    std::uint8_t slowest_silent = 0;
    std::uint8_t slowest_waiting = 0;
    std::uint8_t silent_ranks = 0;  // entries used in `silent`
    std::uint8_t unused = 0;
    std::array<std::uint32_t, kMostSilent> silent{};  // the first silent ranks, by number among all processes
    StageText stage{};
    FailureText failure{};  // why the lost process cannot go on
    std::uint32_t unused_too = 0;
};
static_assert(sizeof(Beat) == 272);

// Order from the first process to all others, sent through the leaders. An order contains the whole current state, so
// that repeating it is harmless.
struct Order {
    std::uint64_t plan = 0;
    std::uint8_t halt = 0;
    std::uint8_t abandon = 0;  // the process must exit immediately
    std::uint8_t leave = 0;    // the process must end normally: no further plan follows

    bool operator==(const Order&) const = default;
};
static_assert(sizeof(Order) == 16);

}  // namespace strakes
