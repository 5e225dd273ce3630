// PlanSetup: checks before the first phase that memory, features and the directory are available. Ranks that are
// processes agree on the result.
#pragma once

#include <optional>

#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "team/team.hpp"
#include "workspace/workspaces.hpp"

namespace strakes {

class PlanSetup {
  public:
    using Fault = Workspaces::Fault;

    PlanSetup(const PlanRequest& request, Report& report, Team& team, Workspaces& workspaces)
        : request_(request), report_(report), team_(team), workspaces_(workspaces) {}

    // Called before ranks that are threads start.
    [[nodiscard]] std::optional<Fault> before_ranks();
    // Called by each rank. Return false in all processes if one of them has a fault, which rank 0 has reported. Return
    // true at once if ranks are threads.
    [[nodiscard]] bool among_processes(Team::Rank rank);

    struct End {
        PlanStatus status;
        bool cleaned;
    };
    // How the plan ended, if processes found a fault before its first phase.
    [[nodiscard]] const std::optional<End>& end() const noexcept { return end_; }

  private:
    [[nodiscard]] std::optional<Fault> memory_fault() const;
    [[nodiscard]] std::optional<Fault> machine_fault() const;
    bool agree(const std::optional<Fault>& fault);

    const PlanRequest& request_;
    Report& report_;
    Team& team_;
    Workspaces& workspaces_;
    std::optional<End> end_;
};

}  // namespace strakes
