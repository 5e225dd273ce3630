// What has to hold before the first phase: the memory, the machine's abilities, the directory. Ranks that are processes
// agree on it.
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

    // Before ranks that are threads start.
    [[nodiscard]] std::optional<Fault> before_ranks();
    // By each rank that is a process. False where the plan ends here, for all of them: rank 0 has said why.
    [[nodiscard]] bool among_processes(Team::Rank rank);

    struct End {
        PlanStatus status;
        bool cleaned;
    };
    // How the plan ended before its first phase, where processes found something at fault.
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
