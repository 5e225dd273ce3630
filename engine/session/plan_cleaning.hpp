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
#include "workspace/workspaces.hpp"

namespace strakes {

class PlanCleaning {
  public:
    using Rank = Team::Rank;

    PlanCleaning(const PlanRequest& request, Team& team, Workspaces& workspaces, PlanWatch& watch)
        : request_(request), team_(team), workspaces_(workspaces), watch_(watch) {}

    // Every rank, when the phases are over.
    void work(Rank rank);

    struct Outcome {
        bool cleaned = false;  // nothing is left
        std::vector<std::string> left;
        std::optional<Failure> failure = std::nullopt;  // why the first of it is
    };
    // When all ranks have; at rank 0.
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
    Removals removals_;               // one for each directory
    std::vector<std::string> left_;   // inside a Ceph file system
    std::optional<Failure> objects_;  // why some of a store are left
    std::optional<Failure> swept_;    // with ranks that are processes: why a directory is
};

}  // namespace strakes
