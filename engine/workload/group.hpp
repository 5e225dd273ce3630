// Which ranks have one writer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"

namespace strakes {

struct Group {
    std::uint32_t number = 0;            // among all groups; that of their file, where each has one
    std::uint32_t groups = 0;            // that there are
    std::vector<std::uint32_t> members;  // ascending; the first is the writer

    [[nodiscard]] std::uint32_t writer() const noexcept { return members.front(); }
    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(members.size()); }
    [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const noexcept;
};

// The group of `rank`, for a phase with writers. `nodes`: the node of each rank. Grouping node makes so many groups of
// the ranks of each node (as many as it has ranks, where those are fewer), global of all ranks; their sizes differ by
// one at most.
Group group_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t rank);

// The number of the file that holds an owner's data.
std::uint32_t file_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t owner);

}  // namespace strakes
