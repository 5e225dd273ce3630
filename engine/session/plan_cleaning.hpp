// What a plan has made is removed again, by its ranks together.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/requests.hpp"
#include "session/plan_watch.hpp"
#include "team/pace.hpp"
#include "team/team.hpp"
#include "workspace/tree_removal.hpp"
#include "workspace/workspace.hpp"

namespace strakes {

class PlanCleaning {
  public:
    using Rank = Team::Rank;

    PlanCleaning(const PlanRequest& request, Team& team, Workspace& workspace, PlanWatch& watch)
        : request_(request), team_(team), workspace_(workspace), watch_(watch) {}

    // Every rank, when the phases are over.
    void work(Rank rank);

    struct Outcome {
        bool cleaned = false;  // nothing is left
        std::vector<std::string> left;
    };
    // When all ranks have; at rank 0.
    [[nodiscard]] Outcome outcome();

  private:
    void work_inside_ceph(Rank rank);
    void sweep(Rank rank);
    [[nodiscard]] Pace pace() const;

    const PlanRequest& request_;
    Team& team_;
    Workspace& workspace_;
    PlanWatch& watch_;
    std::unique_ptr<TreeRemoval> removal_;
    std::vector<std::string> left_;   // inside a Ceph file system
    std::optional<Failure> objects_;  // why some of a store are left
    bool swept_ = false;              // with ranks that are processes: nothing is left
};

}  // namespace strakes
