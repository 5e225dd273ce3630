// PlanRun: runs one plan, from making its directory to removing it. Another thread watches the plan (plan_watch.hpp).
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "crew/crew.hpp"
#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "session/phase_report.hpp"
#include "session/plan_cleaning.hpp"
#include "session/plan_setup.hpp"
#include "session/plan_watch.hpp"
#include "system/buffer.hpp"
#include "system/placement.hpp"
#include "system/queries.hpp"
#include "team/team.hpp"
#include "workload/plan_state.hpp"
#include "workload/workload.hpp"
#include "workspace/workspace.hpp"

namespace strakes {

class PlanRun {
  public:
    using Rank = Team::Rank;

    PlanRun(PlanRequest request, Output& output, Crew& crew, std::unique_ptr<Team> team, int news)
        : request_(std::move(request)),
          crew_(crew),
          team_(std::move(team)),
          report_(output, request_.id),
          workspaces_(request_.directories(), request_.identities, request_.id, unmounted(request_.plan),
                      has_objects(request_.plan)),
          state_(request_.plan),
          watch_(request_, report_, crew_, *team_, news),
          phase_report_(request_, report_, *team_, workspaces_, watch_),
          setup_(request_, report_, *team_, workspaces_),
          cleaning_(request_, *team_, workspaces_, watch_) {}

    ~PlanRun() { team_->join(); }
    PlanRun(const PlanRun&) = delete;
    PlanRun& operator=(const PlanRun&) = delete;

    // Start the team. Return a status only if the plan ended before its first phase: refused, or failed.
    [[nodiscard]] std::optional<PlanStatus> start() {
        if (auto lack = crew_.lacks(request_.plan)) return refuse(lack->failure, lack->key, PlanStatus::refused);
        if (auto fault = setup_.before_ranks())
            return refuse(fault->failure, fault->key, fault->refused() ? PlanStatus::refused : PlanStatus::failed);
        const int error = team_->start([this](Rank rank) { run_rank(rank); });
        if (error == 0) return std::nullopt;
        report_.error(call_failure("pthread_create", "", error), {});
        return end_early(PlanStatus::failed, !workspaces_.remove());
    }
    // Report `done` at rank 0. Called when the ranks of this process have finished.
    PlanStatus finish() {
        team_->join();
        const auto& early = setup_.end();
        if (team_->first() != 0) return early ? early->status : PlanStatus::ok;  // Rank 0 reports the rest.
        if (early) return end_early(early->status, early->cleaned);
        const PlanCleaning::Outcome outcome = cleaning_.outcome();
        PlanStatus status = watch_.halt().load() == Halt::cancel ? PlanStatus::cancelled : PlanStatus::ok;
        if (outcome.failure && status == PlanStatus::ok && !report_.has_errors()) report_.error(*outcome.failure, {});
        if (report_.has_errors() || (!outcome.left.empty() && status == PlanStatus::ok)) status = PlanStatus::failed;
        report_.done(status, outcome.cleaned, outcome.left);
        return status;
    }

    [[nodiscard]] PlanWatch& watch() noexcept { return watch_; }
    [[nodiscard]] const PlanRequest& request() const noexcept { return request_; }

  private:
    PlanStatus refuse(const Failure& failure, const std::string& key, PlanStatus status) {
        report_.error(failure, {.key = key});
        return end_early(status, true);
    }
    PlanStatus end_early(PlanStatus status, bool cleaned) {
        report_.done(status, cleaned, cleaned ? std::vector<std::string>{} : std::vector{request_.id});
        return status;
    }
    void run_rank(Rank rank) noexcept {
        if (setup_.among_processes(rank)) {
            Pinned pinned;
            pin(rank, pinned);
            hold_memory(rank);
            const Plan& plan = request_.plan;
            for (std::size_t i = 0; i < plan.phases.size() && !team_->any(watch_.halt().load() != Halt::none);
                 i = plan.after(i))
                run_phase(rank, i);
            team_->barrier();
            watch_.end_phases();
            cleaning_.work(rank);
        }
        watch_.progress(rank).at(kWaiting);
        // Close the descriptors here, because the rank's thread has a descriptor table that no other thread shares.
        if (team_->processes() != nullptr) workspaces_.close();
        watch_.end_rank();
    }
    void pin(Rank rank, Pinned& pinned) {
        const auto [call, error] = pinned.take(request_.plan.placement, team_->place_on_machine(rank));
        if (error == 0) return;
        report_.error(call_failure(call, "", error), {.rank = rank});
        watch_.raise(Halt::error);
    }
    // Allocate memory_hog_bytes before the first phase, so that this memory cannot be used as page cache.
    void hold_memory(Rank rank) {
        const std::uint64_t bytes = request_.plan.memory_hog_bytes;
        if (bytes == 0 || !team_->leads_node(rank)) return;
        watch_.progress(rank).at("taking memory");
        hog_ = Buffer::of(bytes);
        if (!hog_.empty()) return;
        report_.error(call_failure("mmap", "", ENOMEM), {.rank = rank, .key = "team.memory_hog_bytes"});
        watch_.raise(Halt::error);
    }
    // Write back earlier changes before a phase that calls fsync. Otherwise its first fsync would also write journal
    // entries of earlier phases.
    void write_back(Rank rank, std::size_t index) {
        if (!waits_for_device(request_.plan.phases[index])) return;
        watch_.progress(rank).at("writing back earlier changes");
        // An error is ignored: if the error affects the phase, calls of the phase fail as well.
        (void)::syncfs(workspaces_.root(rank));
    }
    void run_phase(Rank rank, std::size_t index) {
        const bool first_here = rank == team_->first();
        Progress& progress = watch_.progress(rank);
        RankResult& result = phase_report_.result(rank);
        phase_report_.clear(rank);
        watch_.clear(rank);
        if (first_here) watch_.begin_phase(index);
        const PhaseSetting setting{
            request_.plan,           index,         state_,         workspaces_.root(rank), workspaces_.name(rank),
            watch_.timeline().clock, watch_.halt(), request_.impact};
        const std::unique_ptr<Workload> workload =
            make_workload(setting, {.rank = rank,
                                    .progress = progress,
                                    .latencies = watch_.latencies(rank),
                                    .leads_node = team_->leads_node(rank),
                                    .one_process = team_->processes() == nullptr,
                                    .log = &watch_.log(rank),
                                    .exchange = &team_->exchange(rank),
                                    .libraries = team_->libraries(),
                                    .alarm = [this] { watch_.raise(Halt::error); }});
        if (leads(rank, index)) result.failure = workload->lead();
        if (first_here && !result.failure) workload->declare();
        if (!team_->any(result.failure.has_value())) {
            result.failure = workload->prepare(result);
            if (team_->leads_node(rank)) write_back(rank, index);
            if (team_->leads_node(rank)) phase_report_.count_before();
            progress.at(kWaiting);
            if (!team_->any(result.failure || setting.halted())) run_timed(rank, *workload, result);
        }
        if (result.failure) watch_.raise(Halt::error);
        progress.at(kWaiting);
        team_->barrier();
        if (first_here) phase_report_.say(index);
    }
    // Every directory has a copy of a shared tree, created by the first rank that works in the directory.
    [[nodiscard]] bool leads(Rank rank, std::size_t index) const {
        return rank == 0 ||
               (rank < workspaces_.count() && std::holds_alternative<MetadataPhase>(request_.plan.phases[index]));
    }
    void run_timed(Rank rank, Workload& workload, RankResult& result) {
        const bool first_here = rank == team_->first();
        const Start start = team_->start_line();
        if (first_here) {
            phase_report_.begin(start);
            watch_.take_timeline();
            watch_.begin_timed();
        }
        const ThreadTimes before = thread_times();
        workload.run(result);
        const ThreadTimes after = thread_times();
        result.processor = {after.running_ns - before.running_ns, after.runnable_ns - before.runnable_ns};
        watch_.finish_timed(rank);
        if (result.failure) watch_.raise(Halt::error);
        watch_.progress(rank).at(kWaiting);
        team_->barrier();
        if (first_here) watch_.end_timed();
        if (team_->leads_node(rank)) phase_report_.count_after();
        workload.finish(result);
        if (team_->processes() != nullptr) tell_others(workload);
    }
    void tell_others(Workload& workload) {
        const std::string mine = workload.tell();
        // The exchange is skipped if no rank has changes, since its data grows with the square of the number of ranks.
        if (!team_->any(!mine.empty())) return;
        const std::vector<std::string> told = team_->processes()->all(mine);
        for (Rank rank = 0; rank < told.size(); ++rank)
            if (rank != team_->first()) workload.learn(told[rank]);
    }

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
    Buffer hog_;
};

}  // namespace strakes
