// Groups of ranks that share a writer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"

namespace strakes {

struct Group {
    std::uint32_t number = 0;            // among all groups; with file-per-writer also the number of the file
    std::uint32_t groups = 0;            // number of groups
    std::vector<std::uint32_t> members;  // ascending; the first is the writer

    [[nodiscard]] std::uint32_t writer() const noexcept { return members.front(); }
    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(members.size()); }
    [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const noexcept;
};

// Return the group of `rank` in a phase with writers. `nodes` has the node of each rank. With grouping node, every node
// has `writers` groups, or one for each of its ranks if those are fewer. With grouping global, all ranks together have
// `writers` groups. The groups of a node, or of all ranks, differ in size by one at most.
Group group_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t rank);

// Return the number of the file that holds an owner's data.
std::uint32_t file_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t owner);

}  // namespace strakes
