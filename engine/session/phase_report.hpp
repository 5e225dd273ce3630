// Collects the tallies of all processes at rank 0, which reports errors, logs and the sample.
#pragma once

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "measure/counters.hpp"
#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "protocol/sample.hpp"
#include "session/plan_watch.hpp"
#include "system/bytes.hpp"
#include "system/queries.hpp"
#include "team/team.hpp"
#include "workload/tally.hpp"
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

    // result() and clear() are for ranks of this process only.
    [[nodiscard]] RankResult& result(Rank rank) { return results_.of(rank); }
    void clear(Rank rank) {
        watch_.latencies(rank).clear();
        results_.of(rank) = {};
        results_.of(rank).start = results_.of(rank).end = watch_.timeline().clock.now();
        if (rank == team_.first()) start_ = {};
    }
    // Called by the first rank of the node before and after the timed section.
    void count_before() { counters_before_ = read_counters(); }
    void count_after() { counters_ = difference(counters_before_, read_counters()); }

    // Called by the first rank of this process.
    void begin(const Start& start) { start_ = start; }
    // Called after the barrier that ends the phase. Rank 0 reports the phase. Other processes send results to rank 0.
    void say(std::size_t index) {
        const auto tally = std::make_unique<Tally>();  // A tally is too large for the stack of a rank.
        const Phase& phase = request_.plan.phases[index];
        for (Rank rank = team_.first(); rank < team_.first() + team_.count(); ++rank) add_rank(*tally, rank, phase);
        tally->start = start_;
        if (team_.leads_node(team_.first())) {
            tally->nodes.push_back(
                {.host = host_name(), .first_rank = team_.first(), .delta = std::exchange(counters_, {})});
        }
        if (team_.first() == 0) watch_.say_logs(index);
        if (!collect(team_, *tally)) return hand_over_log(index);
        take_logs(index);
        const Timeline& timeline = watch_.timeline();
        for (RankFailure& failure : tally->failures) {
            name_project(failure.failure, workspaces_.root(failure.rank));
            report_.error(
                failure.failure,
                {.rank = failure.rank, .phase = &request_.plan.phase_of(index, failure.rank), .host = failure.host});
        }
        report_.sample(sample_of({.plan = request_.plan,
                                  .index = index,
                                  .timeline = timeline,
                                  .tally = *tally,
                                  .cancelled = watch_.halt().load() == Halt::cancel,
                                  .impact = request_.impact}));
    }

  private:
    void add_rank(Tally& tally, Rank rank, const Phase& phase) {
        const Timeline& timeline = watch_.timeline();
        RankResult& result = results_.of(rank);
        if (const auto* mixed = std::get_if<MixedPhase>(&phase)) {
            tally.parts.resize(mixed->parts());
            tally.parts[mixed->part_of(rank)].add(result, watch_.latencies(rank), timeline);
            tally.add(result, {}, timeline);  // No latencies: different calls have no common histogram.
        } else {
            tally.add(result, watch_.latencies(rank), timeline);
        }
        if (result.failure) tally.add_failure(rank, std::move(*result.failure));
    }
    [[nodiscard]] bool logs(std::size_t index, Rank rank) const {
        const auto* probe = std::get_if<ProbePhase>(&request_.plan.phase_of(index, rank));
        return probe != nullptr && probe->log;
    }
    // Send the log to rank 0 in pieces, after rank 0 has requested the log. An empty message ends the log.
    void hand_over_log(std::size_t index) {
        Processes& processes = *team_.processes();
        if (!logs(index, team_.first())) return;
        static_cast<void>(processes.receive(0));
        watch_.log(team_.first()).take(kLogBatch, [&](std::size_t first, std::uint64_t start, auto rows) {
            Packer packer;
            packer.put(std::uint64_t{first});
            packer.put(watch_.timeline().at(start));
            for (const LoggedOperation& row : rows) packer.put(row);
            processes.send(0, packer.take());
        });
        processes.send(0, {});
    }
    // Receive the logs of one rank at a time, so that memory and message sizes do not grow with the number of
    // operations.
    void take_logs(std::size_t index) {
        if (team_.processes() == nullptr) return;
        Processes& processes = *team_.processes();
        for (Rank rank = 1; rank < team_.size(); ++rank) {
            if (!logs(index, rank)) continue;
            processes.send(rank, {});
            for (std::string piece = processes.receive(rank); !piece.empty(); piece = processes.receive(rank)) {
                Unpacker unpacker(piece);
                const auto first = unpacker.get<std::uint64_t>(), start = unpacker.get<std::uint64_t>();
                std::vector<LoggedOperation> rows;
                while (!unpacker.at_end()) rows.push_back(unpacker.get<LoggedOperation>());
                report_.log(request_.plan.phase_of(index, rank), rank, unix_seconds(watch_.timeline(), start), first,
                            rows);
            }
        }
    }

    const PlanRequest& request_;
    Report& report_;
    Team& team_;
    const Workspaces& workspaces_;
    PlanWatch& watch_;
    Gathered<RankResult> results_;
    Start start_;  // start of the first rank of this process
    Counters counters_before_;
    CounterDelta counters_;
};

}  // namespace strakes
