// Groups of consecutive ranks, either of all ranks or of each node's ranks.
#include "workload/group.hpp"

#include <algorithm>
#include <map>

namespace strakes {

namespace {

using Ranks = std::vector<std::uint32_t>;

// Return which of `groups` nearly equal parts contains position `place` of `count`.
std::size_t part_of(std::size_t place, std::size_t count, std::size_t groups) {
    std::size_t part = place * groups / count;
    while ((part + 1) * count / groups <= place) ++part;
    return part;
}

}  // namespace

std::uint32_t Group::place_of(std::uint32_t rank) const noexcept {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(members, rank) - members.begin());
}

Group group_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t rank) {
    std::map<std::uint32_t, Ranks> pools;
    for (std::uint32_t other = 0; other < nodes.size(); ++other)
        pools[phase.grouping == Grouping::node ? nodes[other] : 0].push_back(other);
    const std::uint32_t mine = phase.grouping == Grouping::node ? nodes[rank] : 0;
    Group group;
    for (const auto& [node, ranks] : pools) {
        const std::size_t groups = std::min<std::size_t>(phase.writers, ranks.size());
        group.groups += static_cast<std::uint32_t>(groups);
        if (node != mine) {
            if (node < mine) group.number += static_cast<std::uint32_t>(groups);
            continue;
        }
        const auto place = static_cast<std::size_t>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
        const std::size_t part = part_of(place, ranks.size(), groups);
        const auto at = [&members = ranks, groups](std::size_t border) {
            return members.begin() + static_cast<std::ptrdiff_t>(border * members.size() / groups);
        };
        group.number += static_cast<std::uint32_t>(part);
        group.members.assign(at(part), at(part + 1));
    }
    return group;
}

std::uint32_t file_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t owner) {
    return phase.layout == Layout::file_per_writer ? group_of(phase, nodes, owner).number : owner;
}

}  // namespace strakes
