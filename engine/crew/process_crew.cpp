// Makes teams of processes.
#include "crew/process_crew.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace strakes {

std::optional<Crew::Lack> ProcessCrew::lacks(const Plan& plan) const {
    const std::size_t there = world_.crowd.members_for(plan).size();
    if (there >= plan.ranks) return std::nullopt;
    const bool per_node = plan.ranks_per_node && *plan.ranks_per_node * world_.crowd.nodes().size() < plan.ranks;
    std::string why = std::to_string(world_.crowd.size()) + " processes on " +
                      std::to_string(world_.crowd.nodes().size()) + " nodes were started";
    if (plan.ranks_per_node) why += ", of which " + std::to_string(there) + " fit into ranks_per_node";
    return Lack{{.what = "the plan asks for " + std::to_string(plan.ranks) + " ranks, which are more than there are",
                 .path = {},
                 .operation = {},
                 .why = std::move(why),
                 .error_name = {},
                 .remedy = per_node ? "Use more hosts (--hosts), or a larger ranks_per_node."
                                    : "Start more processes (--ranks), or use fewer ranks in the plan."},
                per_node ? "team.ranks_per_node" : "team.ranks"};
}

void ProcessCrew::nudge() {
    constexpr std::uint64_t kOne = 1;
    static_cast<void>(::write(news_, &kOne, sizeof kOne));
}

void ProcessCrew::fail(const std::string& why) {
    {
        const std::lock_guard lock(failure_mutex_);
        if (failure_.empty()) failure_ = why;
    }
    nudge();
}

std::string ProcessCrew::failure() const {
    const std::lock_guard lock(failure_mutex_);
    return failure_;
}

std::optional<Team::Rank> ProcessCrew::rank_in_plan(Crowd::Rank rank) const {
    if (parts_.empty()) return std::nullopt;
    const Part part = part_of(world_.crowd.number_of_node(rank));
    const std::size_t place = world_.crowd.place_of(rank);
    if (place >= part.count) return std::nullopt;
    return part.first + static_cast<Team::Rank>(place);
}

std::string ProcessCrew::host_of(Team::Rank rank) const {
    return rank < ranks_.size() ? world_.crowd.node_of(ranks_[rank]).host : std::string();
}

std::unique_ptr<Team> ProcessCrew::make_team(const Plan& plan) {
    ranks_ = world_.crowd.members_for(plan);
    parts_.assign(world_.crowd.nodes().size(), {});
    for (Team::Rank rank = 0; rank < ranks_.size(); ++rank) {
        Part& part = parts_[world_.crowd.number_of_node(ranks_[rank])];
        if (part.count++ == 0) part.first = rank;
    }
    const auto here = std::ranges::find(ranks_, world_.post.rank());
    if (here == ranks_.end()) return nullptr;
    const auto mine = static_cast<Team::Rank>(here - ranks_.begin());
    members_ = std::make_unique<Members>(world_.performer, world_.post, world_.crowd, world_.clocks, ranks_, mine,
                                         plan.placement);
    return std::make_unique<Team>(static_cast<Team::Rank>(ranks_.size()), mine, *members_);
}

}  // namespace strakes
