// Runs the phases in order, with barriers between their steps.
#include "session/plan_run.hpp"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace strakes {

PlanRun::PlanRun(PlanRequest request, Output& output, Crew& crew, std::unique_ptr<Team> team, int news)
    : request_(std::move(request)),
      crew_(crew),
      team_(std::move(team)),
      report_(output, request_.id),
      workspaces_(request_.directories(), request_.id, unmounted(request_.plan), has_objects(request_.plan)),
      state_(request_.plan),
      watch_(request_, report_, crew_, *team_, news),
      phase_report_(request_, report_, *team_, workspaces_, watch_),
      setup_(request_, report_, *team_, workspaces_),
      cleaning_(request_, *team_, workspaces_, watch_) {}

PlanRun::~PlanRun() { team_->join(); }

std::optional<PlanStatus> PlanRun::start() {
    if (auto lack = crew_.lacks(request_.plan)) return refuse(lack->failure, lack->key, PlanStatus::refused);
    if (auto fault = setup_.before_ranks())
        return refuse(fault->failure, fault->key, fault->refused() ? PlanStatus::refused : PlanStatus::failed);
    const int error = team_->start([this](Rank rank) { run_rank(rank); });
    if (error == 0) return std::nullopt;
    report_.error(call_failure("pthread_create", "", error), {});
    return end_early(PlanStatus::failed, !workspaces_.remove());
}

PlanStatus PlanRun::refuse(const Failure& failure, const std::string& key, PlanStatus status) {
    report_.error(failure, {.rank = {}, .phase = nullptr, .key = key});
    return end_early(status, true);
}

PlanStatus PlanRun::end_early(PlanStatus status, bool cleaned) {
    report_.done(status, cleaned, cleaned ? std::vector<std::string>{} : std::vector{request_.id});
    return status;
}

void PlanRun::run_rank(Rank rank) noexcept {
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
    // The rank's thread does not share its descriptor table, so only this thread can close its descriptors.
    if (team_->processes() != nullptr) workspaces_.close();
    watch_.end_rank();
}

void PlanRun::pin(Rank rank, Pinned& pinned) {
    const auto [call, error] = pinned.take(request_.plan.placement, team_->place_on_machine(rank));
    if (error == 0) return;
    report_.error(call_failure(call, "", error), {.rank = rank, .phase = nullptr, .key = {}});
    watch_.raise(Halt::error);
}

// Taken before the first phase, so that this memory cannot be page cache.
void PlanRun::hold_memory(Rank rank) {
    const std::uint64_t bytes = request_.plan.memory_hog_bytes;
    if (bytes == 0 || !team_->leads_node(rank)) return;
    watch_.progress(rank).at("taking memory");
    hog_ = Buffer::of(bytes);
    if (!hog_.empty()) return;
    report_.error(call_failure("mmap", "", ENOMEM), {.rank = rank, .phase = nullptr, .key = "team.memory_hog_bytes"});
    watch_.raise(Halt::error);
}

// Called before a phase that calls fsync: its first fsync would otherwise also write what earlier phases left in the
// journal.
void PlanRun::write_back(Rank rank, std::size_t index) {
    if (!waits_for_device(request_.plan.phases[index])) return;
    watch_.progress(rank).at("writing back earlier changes");
    // Ignored: an error that affects the phase recurs in its own calls.
    (void)::syncfs(workspaces_.root(rank));
}

void PlanRun::run_phase(Rank rank, std::size_t index) {
    const bool first_here = rank == team_->first();
    Progress& progress = watch_.progress(rank);
    RankResult& result = phase_report_.result(rank);
    phase_report_.clear(rank);
    watch_.clear(rank);
    if (first_here) watch_.begin_phase(index);
    const PhaseSetting setting{
        request_.plan,           index,         state_,         workspaces_.root(rank), workspaces_.name(rank),
        watch_.timeline().clock, watch_.halt(), request_.impact};
    const std::unique_ptr<Workload> workload = make_workload(setting, {.rank = rank,
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

// Every directory has a copy of a shared tree, made by the first rank that works there.
bool PlanRun::leads(Rank rank, std::size_t index) const {
    return rank == 0 ||
           (rank < workspaces_.count() && std::holds_alternative<MetadataPhase>(request_.plan.phases[index]));
}

void PlanRun::run_timed(Rank rank, Workload& workload, RankResult& result) {
    const bool first_here = rank == team_->first();
    const Start start = team_->start_line();
    if (first_here) {
        phase_report_.begin(start);
        watch_.take_timeline();
        watch_.begin_timed();
    }
    workload.run(result);
    watch_.finish_timed(rank, result.end);
    if (result.failure) watch_.raise(Halt::error);
    watch_.progress(rank).at(kWaiting);
    team_->barrier();
    if (first_here) watch_.end_timed();
    if (team_->leads_node(rank)) phase_report_.count_after();
    workload.finish(result);
    if (team_->processes() != nullptr) tell_others(workload);
}

void PlanRun::tell_others(Workload& workload) {
    const std::string mine = workload.tell();
    // The data of this exchange grow with the square of the number of ranks.
    if (!team_->any(!mine.empty())) return;
    const std::vector<std::string> told = team_->processes()->all(mine);
    for (Rank rank = 0; rank < told.size(); ++rank)
        if (rank != team_->first()) workload.learn(told[rank]);
}

PlanStatus PlanRun::finish() {
    team_->join();
    const auto& early = setup_.end();
    if (team_->first() != 0) return early ? early->status : PlanStatus::ok;  // rank 0 reports the rest
    if (early) return end_early(early->status, early->cleaned);
    const PlanCleaning::Outcome outcome = cleaning_.outcome();
    PlanStatus status = watch_.halt().load() == Halt::cancel ? PlanStatus::cancelled : PlanStatus::ok;
    if (outcome.failure && status == PlanStatus::ok && !report_.has_errors()) report_.error(*outcome.failure, {});
    if (report_.has_errors() || (!outcome.left.empty() && status == PlanStatus::ok)) status = PlanStatus::failed;
    report_.done(status, outcome.cleaned, outcome.left);
    return status;
}

}  // namespace strakes
