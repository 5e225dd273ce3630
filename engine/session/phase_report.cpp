// Tallies of processes meet at rank 0, which says errors, logs and the sample.
#include "session/phase_report.hpp"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/sample.hpp"
#include "system/host.hpp"
#include "system/quota.hpp"

namespace strakes {

void PhaseReport::clear(Rank rank) {
    latencies_.of(rank).clear();
    results_.of(rank) = {};
    results_.of(rank).start = results_.of(rank).end = watch_.timeline().clock.now();
    if (rank == team_.first()) start_ = {};
}

void PhaseReport::say(std::size_t index) {
    const auto tally = std::make_unique<Tally>();  // too large for the stack of a rank
    const Phase& phase = request_.plan.phases[index];
    for (Rank rank = team_.first(); rank < team_.first() + team_.count(); ++rank) add_rank(*tally, rank, phase);
    tally->start = start_;
    if (team_.leads_node(team_.first())) {
        tally->nodes.push_back({.host = host_name(),
                                .first_rank = team_.first(),
                                .delta = std::exchange(counters_, {}),
                                .seconds = team_.first() == 0 ? std::vector<SecondRow>{} : watch_.take_seconds(index)});
    }
    FirstFinish first = watch_.first_finish(tally->rows.front());
    tally->until_first = first.work;
    if (team_.first() == 0)
        watch_.say_logs(index);
    else
        take_logs(*tally);
    if (!collect(team_, *tally)) return;
    const std::vector<SecondRow> seconds = watch_.take_seconds(index);
    const Timeline& timeline = watch_.timeline();
    for (const LoggedRows& log : tally->logs)
        report_.log(request_.plan.phase_of(index, log.rank), log.rank, unix_seconds(timeline, log.start), log.first,
                    log.rows);
    first.work = tally->until_first;
    for (RankFailure& failure : tally->failures) {
        name_project(failure.failure, workspace_.root());
        report_.error(failure.failure, {.rank = failure.rank,
                                        .phase = &request_.plan.phase_of(index, failure.rank),
                                        .key = {},
                                        .host = failure.host});
    }
    report_.sample(sample_of({.plan = request_.plan,
                              .index = index,
                              .timeline = timeline,
                              .tally = *tally,
                              .first = first,
                              .seconds = seconds,
                              .cancelled = watch_.halt().load() == Halt::cancel,
                              .impact = request_.impact}));
}

void PhaseReport::add_rank(Tally& tally, Rank rank, const Phase& phase) {
    const Timeline& timeline = watch_.timeline();
    RankResult& result = results_.of(rank);
    if (const auto* mixed = std::get_if<MixedPhase>(&phase)) {
        tally.parts.resize(mixed->parts());
        tally.parts[mixed->part_of(rank)].add(result, latencies_.of(rank), timeline);
        tally.add(result, {}, timeline);  // latencies of unlike calls make no histogram
    } else {
        tally.add(result, latencies_.of(rank), timeline);
    }
    if (result.failure) tally.add_failure(rank, std::move(*result.failure));
}

// For rank 0 to say.
void PhaseReport::take_logs(Tally& tally) {
    watch_.log(team_.first()).take(kLogBatch, [&](std::size_t first, std::uint64_t start, auto rows) {
        tally.logs.push_back({.rank = team_.first(),
                              .first = first,
                              .start = watch_.timeline().at(start),
                              .rows = {rows.begin(), rows.end()}});
    });
}

}  // namespace strakes
