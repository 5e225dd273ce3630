// PlanCleaning: removes the files of a plan, with all ranks in parallel.
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
#include "workspace/workspaces.hpp"

namespace strakes {

class PlanCleaning {
  public:
    using Rank = Team::Rank;

    PlanCleaning(const PlanRequest& request, Team& team, Workspaces& workspaces, PlanWatch& watch)
        : request_(request), team_(team), workspaces_(workspaces), watch_(watch) {}

    // Called by every rank after the last phase.
    void work(Rank rank);

    struct Outcome {
        bool cleaned = false;  // nothing is left
        std::vector<std::string> left;
        std::optional<Failure> failure = std::nullopt;  // of the first path that could not be removed
    };
    // Return the result at rank 0, after all ranks have returned from work().
    [[nodiscard]] Outcome outcome();

  private:
    using Removals = std::vector<std::unique_ptr<TreeRemoval>>;

    [[nodiscard]] Removals removals_of(TreeRemoval::Share share);
    [[nodiscard]] Outcome what_is_left(std::optional<Failure> swept) const;
    void work_inside_ceph(Rank rank);
    void sweep(Rank rank);
    [[nodiscard]] Pace pace() const;

    const PlanRequest& request_;
    Team& team_;
    Workspaces& workspaces_;
    PlanWatch& watch_;
    Removals removals_;               // one per directory
    std::vector<std::string> left_;   // paths left in a Ceph file system
    std::optional<Failure> objects_;  // why objects of a bucket are left
    std::optional<Failure> swept_;    // why a directory is left, if ranks are processes
};

}  // namespace strakes
