// PlanWatch: state shared by the ranks of a running plan and the thread that watches them, as atomics.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "crew/beat.hpp"
#include "crew/crew.hpp"
#include "protocol/report.hpp"
#include "protocol/sample.hpp"
#include "team/team.hpp"
#include "workload/gathering.hpp"
#include "workload/plan_state.hpp"
#include "workload/tally.hpp"
#include "workload/workload.hpp"

namespace strakes {

class PlanWatch {
  public:
    using Rank = Team::Rank;

    // `news` is an eventfd that becomes readable when the ranks of this process have finished.
    PlanWatch(const PlanRequest& request, Report& report, Crew& crew, Team& team, int news)
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

    // progress(), log() and latencies() are for the ranks of this process.
    [[nodiscard]] Progress& progress(Rank rank) { return progress_.of(rank); }
    [[nodiscard]] OperationLog& log(Rank rank) { return logs_.of(rank); }
    [[nodiscard]] Latencies& latencies(Rank rank) { return latencies_.of(rank); }
    [[nodiscard]] const std::atomic<Halt>& halt() const noexcept { return halt_; }
    [[nodiscard]] std::atomic<std::uint64_t>& removed() noexcept { return removed_; }
    void raise(Halt halt) noexcept {
        Halt none = Halt::none;
        if (halt_.compare_exchange_strong(none, halt)) crew_.nudge();
    }
    void clear(Rank rank) {
        logs_.of(rank).clear();
        progress_.of(rank).publish(0, 0);
        progress_.of(rank).finished.store(false, std::memory_order_relaxed);
    }
    void finish_timed(Rank rank) { progress_.of(rank).finished.store(true, std::memory_order_relaxed); }
    // Must be the last call of each rank.
    void end_rank() {
        if (ranks_left_.fetch_sub(1) != 1) return;
        finished_ = true;
        constexpr std::uint64_t kOne = 1;
        static_cast<void>(::write(news_, &kOne, sizeof kOne));
    }

    // For the first rank of this process, between barriers.
    void begin_phase(std::size_t index) { phase_ = index; }
    // Store the clock offset measured at the start line, which applies to the whole phase. Rank 0, whose watching
    // thread also reads the timeline, never stores an offset, because its clock is the reference.
    void take_timeline() {
        if (team_.first() != 0) timeline_.offset_ns = team_.timeline().offset_ns;
    }
    [[nodiscard]] const Timeline& timeline() const noexcept { return timeline_; }
    void begin_timed() { phase_start_ = timeline_.clock.now(); }
    void end_timed() { phase_start_ = 0; }
    void say_logs(std::size_t index) {
        for (Rank rank = team_.first(); rank < team_.first() + team_.count(); ++rank) {
            logs_.of(rank).take(kLogBatch, [&](std::size_t first, std::uint64_t start, auto rows) {
                report_.log(request_.plan.phase_of(index, rank), rank, unix_seconds(timeline_, timeline_.at(start)),
                            first, rows);
            });
        }
    }
    void end_phases() { phases_over_ = true; }

    // The functions below are for the watching thread. finished() returns whether all ranks of this process have
    // finished.
    [[nodiscard]] bool finished() const noexcept { return finished_.load(); }
    // End the plan without an error: no further operation begins, and all files are removed.
    void cancel() noexcept { raise(Halt::cancel); }
    // End the plan with an error of the watching thread.
    void fail(const Failure& failure) {
        report_.error(failure, {});
        raise(Halt::error);
    }
    // Called when the time limit has passed. Unless the phases are over, reports the slowest rank and cancels.
    void cancel_over_limit() {
        if (phases_over_) return;
        std::array<char, 80> what{};
        std::snprintf(what.data(), what.size(), "the plan took longer than its limit of %g s", request_.limit_s);
        report_rank(slowest_rank(), what.data(),
                    "Find out why this rank is slow, give it less work, or give it more time.");
        cancel();
    }
    void say_progress() {
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
    // Return a number that changes whenever a rank makes progress.
    [[nodiscard]] std::uint64_t heartbeat() const noexcept {
        std::uint64_t sum = phase_.load() + removed_.load(std::memory_order_relaxed);
        for (Rank rank = team_.first(); rank < team_.first() + progress_.size(); ++rank) {
            const Progress& progress = progress_.of(rank);
            sum += progress.operations.load(std::memory_order_relaxed) +
                   (progress.stage.load(std::memory_order_relaxed) == kWaiting ? 1 : 0);
        }
        for (const OtherNode& node : others_) sum += node.beat.operations + node.beat.waiting_ranks;
        return sum;
    }
    // Report the slowest rank, and write the message `done`, when ranks hang in a call. The caller must then exit.
    void give_up() {
        report_rank(slowest_rank(), "a rank does not return from a call",
                    "Check the file system and its servers, then remove what is left with strakes clean.");
        report_.done(PlanStatus::failed, false, {request_.id});
    }
    // Report the loss of another process, and write the message `done`. The caller must then exit.
    void give_up(const Crew::Gone& gone) {
        const Phase& phase = request_.plan.phases[phase_.load()];
        report_.error(gone.failure, {.rank = gone.rank, .phase = &phase, .host = gone.host});
        report_.done(PlanStatus::failed, false, {request_.id});
    }
    // Report the loss of rank 0 if this is rank 1, otherwise return false. `ended` is false if rank 0 is only silent.
    [[nodiscard]] bool give_up_without_leader(Output& output, bool ended) const {
        if (team_.first() != 1) return false;
        const Phase& phase = request_.plan.phases[phase_.load()];
        const Failure failure{
            .what = ended ? "a rank is gone" : "a rank does not answer",
            .why = ended ? "rank 0 ended without a message: it was killed, or it crashed"
                         : "rank 1 heard nothing from rank 0 for longer than is allowed (STRAKES_SILENCE_S): it was "
                           "stopped, or its node hangs or cannot be reached",
            .remedy =
                "Find out on that node what ended or stopped the rank (the kernel log says when memory ran out), "
                "then run the plan again."};
        Report(output, request_.id).error(failure, {.rank = 0, .phase = &phase, .host = crew_.host_of(0)});
        return true;
    }

    [[nodiscard]] Beat beat() const {
        const Progress& progress = progress_.of(team_.first());
        Beat beat;
        beat.operations =
            progress.operations.load(std::memory_order_relaxed) + removed_.load(std::memory_order_relaxed);
        beat.bytes = progress.bytes.load(std::memory_order_relaxed);
        beat.phase = static_cast<std::uint32_t>(phase_.load() + 1);
        beat.finished_ranks = progress.finished.load(std::memory_order_relaxed) ? 1 : 0;
        beat.halt = static_cast<std::uint8_t>(halt_.load());
        const std::string_view stage = progress.stage.load(std::memory_order_relaxed);
        stage.copy(beat.stage.data(), beat.stage.size() - 1);
        return beat;
    }
    [[nodiscard]] Order order() const { return {.halt = static_cast<std::uint8_t>(halt_.load())}; }
    void hear(const Order& order) {
        if (order.halt != 0) raise(static_cast<Halt>(order.halt));
    }
    // Store the state of the ranks on another node. `first` is the lowest rank of the plan on that node.
    void hear(std::size_t node, const Beat& beat) {
        if (others_.size() <= node) others_.resize(node + 1);
        others_[node].beat = beat;
        if (beat.halt != 0) raise(static_cast<Halt>(beat.halt));
    }
    void set_silent(std::size_t node, bool silent, Rank first) {
        if (others_.size() <= node) others_.resize(node + 1);
        others_[node].silent = silent;
        others_[node].first = first;
    }

  private:
    struct Standing {
        Rank rank = 0;
        bool silent = false;
        std::string stage;
        std::uint64_t operations = 0;
    };
    struct OtherNode {
        Beat beat;
        bool silent = false;
        Rank first = 0;
    };

    // Return a silent rank if any rank is silent, else a rank that does not wait for others, else any rank. Among
    // several candidates, return the rank with the fewest operations.
    [[nodiscard]] Standing slowest_rank() const {
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
    [[nodiscard]] bool is_here(const Beat& beat) const noexcept { return beat.phase == phase_.load() + 1; }
    void report_rank(const Standing& standing, std::string what, std::string remedy) {
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
        std::string why = "rank " + std::to_string(rank) +
                          (standing.silent ? " does not answer; when last heard from, it was at '" : " is at '") +
                          standing.stage;
        why += "' after " + std::to_string(standing.operations) + " operations of phase '" + phase_name(phase) + "'";
        const Failure failure{.what = std::move(what),
                              .path = request_.id + "/" + entry,
                              .operation = std::string(phase_operation(phase)),
                              .why = std::move(why),
                              .remedy = std::move(remedy)};
        report_.error(failure, {.rank = rank, .phase = &phase, .host = crew_.host_of(rank)});
    }

    const PlanRequest& request_;
    Report& report_;
    Crew& crew_;
    Team& team_;
    int news_;
    Timeline timeline_;
    Gathered<Progress> progress_;
    std::vector<OtherNode> others_;  // state of other nodes; only at rank 0, for its watching thread
    Gathered<OperationLog> logs_;
    Gathered<Latencies> latencies_;

    std::atomic<Halt> halt_{Halt::none};
    std::atomic<std::size_t> phase_{0};
    std::atomic<std::uint64_t> phase_start_{0};  // start of the timed section in ticks; 0 outside timed sections
    std::atomic<bool> phases_over_{false};
    std::atomic<std::uint64_t> removed_{0};
    std::atomic<Rank> ranks_left_;
    std::atomic<bool> finished_{false};
};

}  // namespace strakes
