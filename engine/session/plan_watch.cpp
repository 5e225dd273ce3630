// Cancels the plan, reports progress and the slowest rank, and relays messages between processes.
#include "session/plan_watch.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "workload/gathering.hpp"
#include "workload/plan_state.hpp"

namespace strakes {

PlanWatch::PlanWatch(const PlanRequest& request, Report& report, Crew& crew, Team& team, int news)
    : request_(request),
      report_(report),
      crew_(crew),
      team_(team),
      news_(news),
      timeline_(team.timeline()),
      progress_(team.first(), team.count()),
      logs_(team.first(), team.count()),
      latencies_(team.first(), team.count()),
      ranks_left_(team.count()) {}

void PlanWatch::raise(Halt halt) noexcept {
    Halt none = Halt::none;
    if (halt_.compare_exchange_strong(none, halt)) crew_.nudge();
}

void PlanWatch::clear(Rank rank) {
    logs_.of(rank).clear();
    progress_.of(rank).publish(0, 0);
    progress_.of(rank).finished.store(false, std::memory_order_relaxed);
}

void PlanWatch::begin_phase(std::size_t index) {
    first_ = {};
    first_taken_ = false;
    phase_ = index;
}

void PlanWatch::take_timeline() {
    if (team_.first() == 0) return;  // rank 0's clock is the reference
    const std::lock_guard lock(glimpse_mutex_);
    timeline_.offset_ns = team_.timeline().offset_ns;
}

void PlanWatch::finish_timed(Rank rank, std::uint64_t end) {
    progress_.of(rank).finished.store(true, std::memory_order_relaxed);
    if (team_.processes() != nullptr) {
        const std::size_t phases = phase_.load() + 1;
        finished_phases_ = phases;
        if (glimpsed_phases_.load() < phases) crew_.nudge();
        return;
    }
    if (first_taken_.exchange(true)) return;
    first_.at = timeline_.at(end);
    for (Rank other = team_.first(); other < team_.first() + progress_.size(); ++other) {
        first_.work.bytes += progress_.of(other).bytes.load(std::memory_order_relaxed);
        first_.work.operations += progress_.of(other).operations.load(std::memory_order_relaxed);
    }
}

FirstFinish PlanWatch::first_finish(const RankRow& row) {
    if (team_.processes() == nullptr) return first_;
    const std::uint64_t moment = team_.processes()->least(row.end);
    const std::lock_guard lock(glimpse_mutex_);
    return {.at = moment, .work = work_until(moment, row, glimpse_of_ == phase_.load() + 1 ? glimpse_ : Glimpse{})};
}

void PlanWatch::say_logs(std::size_t index) {
    for (Rank rank = team_.first(); rank < team_.first() + team_.count(); ++rank) {
        logs_.of(rank).take(kLogBatch, [&](std::size_t first, std::uint64_t start, auto rows) {
            report_.log(request_.plan.phase_of(index, rank), rank, unix_seconds(timeline_, timeline_.at(start)), first,
                        rows);
        });
    }
}

void PlanWatch::end_rank() {
    if (ranks_left_.fetch_sub(1) != 1) return;
    finished_ = true;
    constexpr std::uint64_t kOne = 1;
    static_cast<void>(::write(news_, &kOne, sizeof kOne));
}

void PlanWatch::cancel_over_limit() {
    if (phases_over_) return;
    std::array<char, 80> what{};
    std::snprintf(what.data(), what.size(), "the plan took longer than its limit of %g s", request_.limit_s);
    report_rank(slowest_rank(), what.data(),
                "Find out why this rank is slow, give it less work, or give it more time.");
    cancel();
}

// Silent ranks come first, then ranks that do not wait for others. Among equals the one with the fewest operations
// wins.
PlanWatch::Standing PlanWatch::slowest_rank() const {
    Standing slowest{.rank = team_.first(), .silent = false, .stage = {}, .operations = 0};
    auto least = std::tuple{true, true, UINT64_MAX};
    const auto take = [&](Standing standing, bool waiting) {
        const auto mine = std::tuple{!standing.silent, waiting, standing.operations};
        if (mine >= least) return;
        least = mine;
        slowest = std::move(standing);
    };
    for (Rank rank = team_.first(); rank < team_.first() + progress_.size(); ++rank) {
        const Progress& progress = progress_.of(rank);
        const char* stage = progress.stage.load();
        take({.rank = rank, .silent = false, .stage = stage, .operations = progress.operations.load()},
             stage == kWaiting);
    }
    for (const OtherNode& node : others_) {
        if (!node.silent && node.beat.slowest == kNobody) continue;
        const bool named = node.beat.slowest != kNobody;
        take({.rank = named ? node.beat.slowest : node.first,
              .silent = node.silent || node.beat.slowest_silent != 0,
              .stage = named ? std::string(view_of(node.beat.stage)) : "starting",
              .operations = is_here(node.beat) ? node.beat.slowest_operations : 0},
             node.beat.slowest_waiting != 0);
    }
    return slowest;
}

void PlanWatch::report_rank(const Standing& standing, std::string what, std::string remedy) {
    const Rank rank = standing.rank;
    const Phase& phase = request_.plan.phase_of(phase_.load(), rank);
    const std::string entry = std::visit(
        [&]<class Body>(const Body& body) {
            std::uint32_t owner = owner_for(rank, body.rank_shift, request_.plan.ranks);
            if constexpr (std::is_same_v<Body, TransferPhase>)
                owner = file_of(body, team_.exchange(team_.first()).nodes(), owner);
            return entry_of(body, owner);
        },
        phase);
    std::string why = "rank " + std::to_string(rank);
    if (standing.silent)
        why += " does not answer; when last heard from, it was at '";
    else
        why += " is at '";
    why += standing.stage;
    why += "' after " + std::to_string(standing.operations) + " operations of phase '" + phase_name(phase) + "'";
    const Failure failure{.what = std::move(what),
                          .path = request_.id + "/" + entry,
                          .operation = std::string(phase_operation(phase)),
                          .why = std::move(why),
                          .remedy = std::move(remedy)};
    report_.error(failure, {.rank = rank, .phase = &phase, .key = {}, .host = crew_.host_of(rank)});
}

void PlanWatch::say_progress() {
    const std::uint64_t start = phase_start_.load();
    if (start == 0) return;
    const std::size_t index = phase_.load();
    Report::Running running{.phase = request_.plan.number_of(index),
                            .name = phase_name(request_.plan.phases[index]),
                            .elapsed_s = timeline_.clock.to_seconds(elapsed(start, timeline_.clock.now())),
                            .bytes = 0,
                            .operations = 0,
                            .ranks_done = 0};
    for (Rank rank = team_.first(); rank < team_.first() + progress_.size(); ++rank) {
        const Progress& progress = progress_.of(rank);
        running.bytes += progress.bytes.load(std::memory_order_relaxed);
        running.operations += progress.operations.load(std::memory_order_relaxed);
        running.ranks_done += progress.finished.load(std::memory_order_relaxed) ? 1 : 0;
    }
    for (const OtherNode& node : others_) {
        if (!is_here(node.beat)) continue;
        running.bytes += node.beat.bytes;
        running.operations += node.beat.operations;
        running.ranks_done += node.beat.finished_ranks;
    }
    report_.progress(running);
    say_logs(index);
}

std::uint64_t PlanWatch::heartbeat() const noexcept {
    std::uint64_t sum = phase_.load() + removed_.load(std::memory_order_relaxed);
    for (Rank rank = team_.first(); rank < team_.first() + progress_.size(); ++rank) {
        const Progress& progress = progress_.of(rank);
        sum += progress.operations.load(std::memory_order_relaxed) +
               (progress.stage.load(std::memory_order_relaxed) == kWaiting ? 1 : 0);
    }
    for (const OtherNode& node : others_) sum += node.beat.operations + node.beat.waiting_ranks;
    return sum;
}

void PlanWatch::give_up() {
    report_rank(slowest_rank(), "a rank does not return from a call",
                "Check the file system and its servers, then remove what is left with strakes clean.");
    report_.done(PlanStatus::failed, false, {request_.id});
}

void PlanWatch::give_up(const Crew::Gone& gone) {
    const Phase& phase = request_.plan.phases[phase_.load()];
    report_.error(gone.failure, {.rank = gone.rank, .phase = &phase, .key = {}, .host = gone.host});
    report_.done(PlanStatus::failed, false, {request_.id});
}

bool PlanWatch::give_up_without_leader(Output& output, bool ended) const {
    if (team_.first() != 1) return false;
    const Phase& phase = request_.plan.phases[phase_.load()];
    const Failure failure{
        .what = ended ? "a rank is gone" : "a rank does not answer",
        .why = ended ? "rank 0 ended without a message: it was killed, or it crashed"
                     : "rank 1 heard nothing from rank 0 for longer than is allowed (STRAKES_SILENCE_S): it was "
                       "stopped, or its node hangs or cannot be reached",
        .remedy =
            "Find out on that node what ended or stopped it (the kernel log says when memory ran out), and then "
            "run it again."};
    Report(output, request_.id).error(failure, {.rank = 0, .phase = &phase, .key = {}, .host = crew_.host_of(0)});
    return true;
}

Beat PlanWatch::beat() const {
    const Progress& progress = progress_.of(team_.first());
    Beat beat;
    beat.operations = progress.operations.load(std::memory_order_relaxed) + removed_.load(std::memory_order_relaxed);
    beat.bytes = progress.bytes.load(std::memory_order_relaxed);
    beat.phase = static_cast<std::uint32_t>(phase_.load() + 1);
    beat.finished_phases = static_cast<std::uint32_t>(finished_phases_.load());
    beat.finished = progress.finished.load(std::memory_order_relaxed) ? 1 : 0;
    beat.halt = static_cast<std::uint8_t>(halt_.load());
    const std::string_view stage = progress.stage.load(std::memory_order_relaxed);
    stage.copy(beat.stage.data(), beat.stage.size() - 1);
    return beat;
}

Order PlanWatch::order() const {
    Order order;
    order.glimpse_phases = static_cast<std::uint32_t>(std::max(glimpsed_phases_.load(), finished_phases_.load()));
    order.halt = static_cast<std::uint8_t>(halt_.load());
    return order;
}

void PlanWatch::hear(const Order& order) {
    if (order.halt != 0) raise(static_cast<Halt>(order.halt));
    glimpse(order.glimpse_phases);
}

void PlanWatch::hear(std::size_t node, const NodeBeat& beat) {
    if (others_.size() <= node) others_.resize(node + 1);
    others_[node].beat = beat;
    if (beat.halt != 0) raise(static_cast<Halt>(beat.halt));
    glimpse(beat.finished_phases);
}

void PlanWatch::set_silent(std::size_t node, bool silent, Rank first) {
    if (others_.size() <= node) others_.resize(node + 1);
    others_[node].silent = silent;
    others_[node].first = first;
}

// Record the work of this process when the first of all ranks finishes a phase.
void PlanWatch::glimpse(std::size_t phases) {
    if (phases <= glimpsed_phases_.load()) return;
    glimpsed_phases_ = phases;
    const std::lock_guard lock(glimpse_mutex_);
    if (phase_.load() + 1 != phases) return;
    const Progress& progress = progress_.of(team_.first());
    glimpse_ = {.at = timeline_.now(), .work = {progress.bytes.load(), progress.operations.load()}};
    glimpse_of_ = phases;
}

}  // namespace strakes
