// The crew whose ranks are threads of one process.
#include "crew/crew.hpp"

namespace strakes {

std::optional<Crew::Lack> ThreadCrew::lacks(const Plan& plan) const {
    if (!plan.ranks_per_node || *plan.ranks_per_node >= plan.ranks) return std::nullopt;
    return Lack{{.what = "there is only one node, but the plan asks for more",
                 .path = {},
                 .operation = {},
                 .why = "ranks_per_node is " + std::to_string(*plan.ranks_per_node) + " of " +
                        std::to_string(plan.ranks) + " ranks, all of which are threads here",
                 .error_name = {},
                 .remedy = "Use a launcher that starts processes on several nodes, or leave ranks_per_node out."},
                "team.ranks_per_node"};
}

std::unique_ptr<Team> ThreadCrew::team_for(const PlanRequest& request) {
    const Plan& plan = request.plan;
    return std::make_unique<Team>(plan.ranks, plan.ranks, plan.placement.crowds(plan.ranks));
}

}  // namespace strakes
