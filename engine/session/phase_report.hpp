// What one phase came to: the results of the ranks here, put together with those of other processes into a sample.
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

    // For the ranks of this process.
    [[nodiscard]] RankResult& result(Rank rank) { return results_.of(rank); }
    void clear(Rank rank);
    // Of the rank that leads the node, around the timed section.
    void count_before() { counters_before_ = read_counters(); }
    void count_after() { counters_ = difference(counters_before_, read_counters()); }

    // For the first of them.
    void begin(const Start& start) { start_ = start; }
    // After the barrier at the end of the phase. Rank 0's process says it; the others hand it on.
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
    Start start_;  // of the first rank here
    Counters counters_before_;
    CounterDelta counters_;
};

}  // namespace strakes
