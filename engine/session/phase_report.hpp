// PhaseReport: merges the results of all ranks, local and remote, into the sample of a phase.
#pragma once

#include "measure/counters.hpp"
#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "session/plan_watch.hpp"
#include "team/team.hpp"
#include "workload/tally.hpp"
#include "workload/workload.hpp"
#include "workspace/workspaces.hpp"

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
    void add_latency_rows(Tally& tally);
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

}  // namespace strakes
