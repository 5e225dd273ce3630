// PlanRun: runs one plan, from making its directory to removing it. Another thread watches it (plan_watch.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "crew/crew.hpp"
#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "session/phase_report.hpp"
#include "session/plan_cleaning.hpp"
#include "session/plan_setup.hpp"
#include "session/plan_watch.hpp"
#include "system/buffer.hpp"
#include "system/placement.hpp"
#include "team/team.hpp"
#include "workload/plan_state.hpp"
#include "workload/workload.hpp"
#include "workspace/workspaces.hpp"

namespace strakes {

class PlanRun {
  public:
    using Rank = Team::Rank;

    // `news` as for PlanWatch.
    PlanRun(PlanRequest request, Output& output, Crew& crew, std::unique_ptr<Team> team, int news);
    ~PlanRun();
    PlanRun(const PlanRun&) = delete;
    PlanRun& operator=(const PlanRun&) = delete;

    // Start the team. Return a status only if the plan ended before its first phase: refused, or failed.
    [[nodiscard]] std::optional<PlanStatus> start();
    // Report `done` at rank 0. Called when the ranks of this process have finished.
    PlanStatus finish();

    [[nodiscard]] PlanWatch& watch() noexcept { return watch_; }
    [[nodiscard]] const PlanRequest& request() const noexcept { return request_; }

  private:
    PlanStatus refuse(const Failure& failure, const std::string& key, PlanStatus status);
    PlanStatus end_early(PlanStatus status, bool cleaned);
    void run_rank(Rank rank) noexcept;
    void pin(Rank rank, Pinned& pinned);
    void hold_memory(Rank rank);
    void write_back(Rank rank, std::size_t index);
    void run_phase(Rank rank, std::size_t index);
    [[nodiscard]] bool leads(Rank rank, std::size_t index) const;
    void run_timed(Rank rank, Workload& workload, RankResult& result);
    void tell_others(Workload& workload);

    PlanRequest request_;
    Crew& crew_;
    std::unique_ptr<Team> team_;
    Report report_;
    Workspaces workspaces_;
    PlanState state_;
    PlanWatch watch_;
    PhaseReport phase_report_;
    PlanSetup setup_;
    PlanCleaning cleaning_;
    Buffer hog_;  // memory_hog_bytes
};

}  // namespace strakes
