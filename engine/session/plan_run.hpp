// PlanRun: runs one plan, from making its directory to removing it. Another thread watches it (plan_watch.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crew/crew.hpp"
#include "measure/counters.hpp"
#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "session/plan_watch.hpp"
#include "system/buffer.hpp"
#include "system/placement.hpp"
#include "team/pace.hpp"
#include "team/team.hpp"
#include "workload/plan_state.hpp"
#include "workload/tally.hpp"
#include "workload/workload.hpp"
#include "workspace/tree_removal.hpp"
#include "workspace/workspace.hpp"

namespace strakes {

class PhaseReport {
  public:
    using Rank = Team::Rank;

    PhaseReport(const PlanRequest& request, Report& report, Team& team, const Workspaces& workspaces, PlanWatch& watch)
        : request_(request),
          report_(report),
          team_(team),
          workspaces_(workspaces),
          watch_(watch),
          results_(team.first(), team.count()) {}

    // The following two are for the ranks of this process.
    [[nodiscard]] RankResult& result(Rank rank) { return results_.of(rank); }
    void clear(Rank rank);
    // Called by the first rank of the node before and after the timed section.
    void count_before() { counters_before_ = read_counters(); }
    void count_after() { counters_ = difference(counters_before_, read_counters()); }

    // Called by the first rank of this process.
    void begin(const Start& start) { start_ = start; }
    // Called after the barrier that ends the phase. Rank 0 reports the phase; other processes send it their results.
    void say(std::size_t index);

  private:
    void add_rank(Tally& tally, Rank rank, const Phase& phase);
    [[nodiscard]] bool logs(std::size_t index, Rank rank) const;
    void hand_over_log(std::size_t index);
    void take_logs(std::size_t index);

    const PlanRequest& request_;
    Report& report_;
    Team& team_;
    const Workspaces& workspaces_;
    PlanWatch& watch_;
    Gathered<RankResult> results_;
    Start start_;  // of the first rank of this process
    Counters counters_before_;
    CounterDelta counters_;
};

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
