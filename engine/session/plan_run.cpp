// Phases, one after the other, with barriers between their steps.
#include "session/plan_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "plan/object_reader.hpp"
#include "plan/parse.hpp"
#include "system/bytes.hpp"
#include "system/host.hpp"
#include "system/quota.hpp"
#include "workload/gathering.hpp"
#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"
#include "backend/ceph_place.hpp"
#endif

namespace strakes {

PlanRun::PlanRun(PlanRequest request, Output& output, Crew& crew, std::unique_ptr<Team> team, int news)
    : request_(std::move(request)),
      crew_(crew),
      team_(std::move(team)),
      timeline_(team_->timeline()),
      report_(output, request_.id),
      workspace_(unmounted(request_.plan)),
      state_(request_.plan),
      progress_(team_->first(), team_->first() == 0 ? team_->size() : team_->count()),
      latencies_(team_->first(), team_->count()),
      results_(team_->first(), team_->count()),
      logs_(team_->first(), team_->count()),
      news_(news) {}

PlanRun::~PlanRun() { team_->join(); }

std::optional<PlanStatus> PlanRun::start() {
    if (auto lack = crew_.lacks(request_.plan)) return refuse(lack->failure, lack->key, PlanStatus::refused);
    if (one_process()) {
        auto fault = memory_fault();
        if (!fault) fault = workspace_.make(request_.directory, request_.id, request_.prepared);
        if (fault)
            return refuse(fault->failure, fault->key, fault->refused() ? PlanStatus::refused : PlanStatus::failed);
    }
    ranks_left_ = team_->count();
    const int error = team_->start([this](Rank rank) { run_rank(rank); });
    if (error == 0) return std::nullopt;
    report_.error(call_failure("pthread_create", "", error), {});
    const bool removed = workspace_.remove();
    report_.done(PlanStatus::failed, removed, removed ? std::vector<std::string>{} : std::vector{request_.id});
    return PlanStatus::failed;
}

std::optional<PlanStatus> PlanRun::refuse(const Failure& failure, const std::string& key, PlanStatus status) {
    report_.error(failure, {.rank = {}, .phase = nullptr, .key = key});
    report_.done(status, true, {});
    return status;
}

namespace {

Workspace::Fault memory_lack(const char* what, std::uint64_t wanted, std::uint64_t available, const char* remedy,
                             const char* key) {
    return {{.what = what,
             .path = {},
             .operation = {},
             .why = std::to_string(wanted) + " bytes; available: " + std::to_string(available) +
                    " bytes, of which 80 % may be used",
             .error_name = {},
             .remedy = remedy},
            key};
}

}  // namespace

// Better said now than found out by the kernel's killer.
std::optional<Workspace::Fault> PlanRun::memory_fault() const {
    std::uint64_t largest = 0, staged = 0;
    std::map<std::string_view, std::uint64_t> sizes;  // of shared files
    for (const Phase& phase : request_.plan.phases) {
        if (const auto* transfer = std::get_if<TransferPhase>(&phase)) {
            largest = std::max(largest, buffer_bytes_of(*transfer));
            if (transfer->operation == TransferOperation::write)
                sizes[transfer->files] = transfer->bytes_per_rank() * request_.plan.ranks;
        } else if (const auto* stage = std::get_if<StagePhase>(&phase)) {
            if (stage->readers_per_node == 0)
                largest = std::max(largest, stage->transfer_bytes);
            else
                staged = std::max(staged, sizes[stage->files]);
        }
    }
    const Rank ranks = one_process() ? team_->count() : team_->processes()->ranks_on_node();
    const std::uint64_t hog = request_.plan.memory_hog_bytes;
    const std::uint64_t available = read_counters().memory.available_bytes;
    if (available == 0) return std::nullopt;
    if (hog > available / 10 * 8)
        return memory_lack("the memory to occupy is not available", hog, available, "Use a smaller memory_hog_bytes.",
                           "team.memory_hog_bytes");
    if (staged > (available - hog) / 10 * 8)
        return memory_lack("the staged file does not fit into the memory of a node", staged, available - hog,
                           "Use a smaller file, or readers_per_node 0.", "team.ranks");
    if (largest <= (available - hog) / 10 * 8 / ranks) return std::nullopt;
    return Workspace::Fault{
        {.what = "the buffers of all ranks do not fit into memory",
         .path = {},
         .operation = {},
         .why = std::to_string(ranks) + " ranks x " + std::to_string(largest) +
                " bytes; available: " + std::to_string(available) + " bytes, of which 80 % may be used",
         .error_name = {},
         .remedy = "Use a smaller transfer_bytes or queue_depth, or fewer ranks."},
        "team.ranks"};
}

// What rank 0's machine could do, another one may not.
std::optional<Workspace::Fault> PlanRun::fault_here() const {
    try {
        check_here(request_.plan);
        return std::nullopt;
    } catch (const Refusal& refusal) {
        return Workspace::Fault{{.what = refusal.what(),
                                 .path = {},
                                 .operation = {},
                                 .why = "this node cannot do what the plan asks for; others may",
                                 .error_name = {},
                                 .remedy = refusal.remedy()},
                                refusal.key()};
    }
}

// Of a rank that is a process: everything that start() does for threads, agreed with the others.
bool PlanRun::set_up(Rank rank) {
    std::optional<Workspace::Fault> fault = fault_here();
    if (!fault && team_->leads_node(rank)) fault = memory_fault();
    if (!agreed(fault)) return false;
    if (rank == 0) fault = workspace_.make(request_.directory, request_.id, request_.prepared);
    if (!agreed(fault)) return false;
    if (rank != 0) fault = workspace_.join(request_.directory, request_.id);
    if (agreed(fault)) return true;
    workspace_.close();
    team_->barrier();
    if (rank == 0) swept_ = workspace_.remove();
    return false;
}

// True when nobody has a fault; otherwise rank 0 says which there are.
bool PlanRun::agreed(const std::optional<Workspace::Fault>& fault) {
    if (!team_->any(fault.has_value())) return true;
    Packer packer;
    if (fault) {
        packer.put_text(pack(fault->failure));
        packer.put_text(fault->key);
        packer.put_text(host_name());
    }
    early_ = PlanStatus::refused;
    swept_ = true;
    const std::vector<std::string> faults = team_->processes()->all(packer.take());
    for (Rank rank = 0; rank < faults.size(); ++rank) {
        if (faults[rank].empty()) continue;
        Unpacker unpacker(faults[rank]);
        const Failure failure = unpack_failure(unpacker.get_text());
        const std::string key(unpacker.get_text());
        if (key.empty()) early_ = PlanStatus::failed;
        if (team_->first() == 0)
            report_.error(failure,
                          {.rank = rank, .phase = nullptr, .key = key, .host = std::string(unpacker.get_text())});
    }
    return false;
}

void PlanRun::run_rank(Rank rank) noexcept {
    if (one_process() || set_up(rank)) {
        hold_memory(rank);
        const Plan& plan = request_.plan;
        for (std::size_t i = 0; i < plan.phases.size() && !team_->any(halt_.load() != Halt::none); i = plan.after(i))
            run_phase(rank, i);
        team_->barrier();
        phases_over_ = true;
        clean(rank);
        part(rank);
    }
    progress_.of(rank).at(kWaiting);
    // Processes work in a thread with a descriptor table of its own, and nobody else can close what it has opened.
    if (!one_process()) workspace_.close();
    if (ranks_left_.fetch_sub(1) != 1) return;
    finished_ = true;
    constexpr std::uint64_t kOne = 1;
    static_cast<void>(::write(news_, &kOne, sizeof kOne));
}

// Before the first phase: what is held cannot be page cache.
void PlanRun::hold_memory(Rank rank) {
    const std::uint64_t bytes = request_.plan.memory_hog_bytes;
    if (bytes == 0 || !team_->leads_node(rank)) return;
    progress_.of(rank).at("taking memory");
    hog_ = Buffer::of(bytes);
    if (!hog_.empty()) return;
    report_.error(call_failure("mmap", "", ENOMEM), {.rank = rank, .phase = nullptr, .key = "team.memory_hog_bytes"});
    raise(Halt::error);
}

void PlanRun::run_phase(Rank rank, std::size_t index) {
    Progress& progress = progress_.of(rank);
    Latencies& latencies = latencies_.of(rank);
    RankResult& result = results_.of(rank);
    latencies.clear();
    logs_.of(rank).clear();
    result = {};
    result.start = result.end = clock_.now();
    progress.publish(0, 0);
    progress.finished.store(false, std::memory_order_relaxed);
    if (is_first_here(rank)) {
        first_ = {};
        start_ = {};
        first_taken_ = false;
        phase_ = index;
        for (Rank other = rank + 1; !one_process() && other < progress_.size(); ++other) {
            progress_.of(other).publish(0, 0);
            progress_.of(other).finished.store(false, std::memory_order_relaxed);
        }
    }
    const PhaseSetting setting{request_.plan,     index,  state_, workspace_.root(),
                               workspace_.name(), clock_, halt_,  request_.impact};
    const std::unique_ptr<Workload> workload = make_workload(setting, {.rank = rank,
                                                                       .progress = progress,
                                                                       .latencies = latencies,
                                                                       .leads_node = team_->leads_node(rank),
                                                                       .one_process = one_process(),
                                                                       .log = &logs_.of(rank),
                                                                       .exchange = &team_->exchange(rank),
                                                                       .libraries = team_->libraries(),
                                                                       .alarm = [this] { raise(Halt::error); }});
    if (rank == 0) result.failure = workload->lead();
    if (is_first_here(rank) && !result.failure) workload->declare();
    if (!team_->any(result.failure.has_value())) {
        result.failure = workload->prepare(result);
        if (team_->leads_node(rank)) counters_before_ = read_counters();
        progress.at(kWaiting);
        if (!team_->any(result.failure || setting.halted())) {
            begin(rank, team_->start_line());
            work(rank, *workload, result);
        }
    }
    if (result.failure) raise(Halt::error);
    progress.at(kWaiting);
    team_->barrier();
    if (is_first_here(rank)) report_phase(index);
}

// Clocks may have been compared again at the start line; for one phase they stand as they stood there.
void PlanRun::begin(Rank rank, const Start& start) {
    if (!is_first_here(rank)) return;
    start_ = start;
    if (rank == 0) return;  // all others are held against its clock
    const std::lock_guard lock(glimpse_mutex_);
    timeline_.offset_ns = team_->timeline().offset_ns;
}

void PlanRun::work(Rank rank, Workload& workload, RankResult& result) {
    Progress& progress = progress_.of(rank);
    if (is_first_here(rank)) phase_start_ = clock_.now();
    workload.run(result);
    progress.finished.store(true, std::memory_order_relaxed);
    note_first(result);
    if (result.failure) raise(Halt::error);
    progress.at(kWaiting);
    team_->barrier();
    if (is_first_here(rank)) phase_start_ = 0;
    if (team_->leads_node(rank)) counters_ = difference(counters_before_, read_counters());
    workload.finish(result);
    if (!one_process()) tell_others(workload);
}

void PlanRun::tell_others(Workload& workload) {
    const std::vector<std::string> told = team_->processes()->all(workload.tell());
    for (Rank rank = 0; rank < told.size(); ++rank)
        if (rank != team_->first()) workload.learn(told[rank]);
}

void PlanRun::note_first(const RankResult& result) {
    if (!one_process()) {
        const std::size_t phases = phase_.load() + 1;
        finished_phases_ = phases;
        if (glimpsed_phases_.load() < phases) crew_.nudge();
        return;
    }
    if (first_taken_.exchange(true)) return;
    first_.at = timeline_.at(result.end);
    for (Rank rank = 0; rank < progress_.size(); ++rank) {
        first_.work.bytes += progress_.of(rank).bytes.load(std::memory_order_relaxed);
        first_.work.operations += progress_.of(rank).operations.load(std::memory_order_relaxed);
    }
}

void PlanRun::raise(Halt halt) noexcept {
    Halt none = Halt::none;
    if (halt_.compare_exchange_strong(none, halt)) crew_.nudge();
}

void PlanRun::report_phase(std::size_t index) {
    const Phase& phase = request_.plan.phases[index];
    const auto tally = std::make_unique<Tally>();  // too large for the stack of a rank
    for (Rank rank = team_->first(); rank < team_->first() + team_->count(); ++rank) add_rank(*tally, rank, phase);
    tally->start = start_;
    if (team_->leads_node(team_->first())) {
        tally->nodes.push_back({.host = host_name(),
                                .first_rank = team_->first(),
                                .delta = std::exchange(counters_, {}),
                                .seconds = team_->first() == 0 ? std::vector<SecondRow>{} : seconds_.take(index + 1)});
    }
    FirstFinish first = first_finish(*tally);
    if (team_->first() == 0)
        say_logs(index);
    else
        take_logs(*tally);
    if (!collect(*team_, *tally)) return;
    const std::vector<SecondRow> seconds = seconds_.take(index + 1);
    for (const LoggedRows& log : tally->logs)
        report_.log(phase_of(index, log.rank), log.rank, unix_seconds(timeline_, log.start), log.first, log.rows);
    first.work = tally->until_first;
    for (RankFailure& failure : tally->failures) {
        name_project(failure.failure, workspace_.root());
        report_.error(failure.failure,
                      {.rank = failure.rank, .phase = &phase_of(index, failure.rank), .key = {}, .host = failure.host});
    }
    report_.sample(sample_of({.plan = request_.plan,
                              .index = index,
                              .timeline = timeline_,
                              .tally = *tally,
                              .first = first,
                              .seconds = seconds,
                              .cancelled = halt_.load() == Halt::cancel,
                              .impact = request_.impact}));
}

// One of this process.
void PlanRun::add_rank(Tally& tally, Rank rank, const Phase& phase) {
    RankResult& result = results_.of(rank);
    if (const auto* mixed = std::get_if<MixedPhase>(&phase)) {
        tally.parts.resize(mixed->parts());
        tally.parts[mixed->part_of(rank)].add(result, latencies_.of(rank), timeline_);
        tally.add(result, {}, timeline_);  // latencies of unlike calls make no histogram
    } else {
        tally.add(result, latencies_.of(rank), timeline_);
    }
    if (result.failure) tally.add_failure(rank, std::move(*result.failure));
}

constexpr std::size_t kLogBatch = 1000;

// Of the ranks of this process, what has come since the last time.
void PlanRun::say_logs(std::size_t index) {
    for (Rank rank = team_->first(); rank < team_->first() + team_->count(); ++rank) {
        logs_.of(rank).take(kLogBatch, [&](std::size_t first, std::uint64_t start, auto rows) {
            report_.log(phase_of(index, rank), rank, unix_seconds(timeline_, timeline_.at(start)), first, rows);
        });
    }
}

void PlanRun::take_logs(Tally& tally) {
    logs_.of(team_->first()).take(kLogBatch, [&](std::size_t first, std::uint64_t start, auto rows) {
        tally.logs.push_back(
            {.rank = team_->first(), .first = first, .start = timeline_.at(start), .rows = {rows.begin(), rows.end()}});
    });
}

// When the first of all ranks finished; what those of this process had done until then goes to the tally.
FirstFinish PlanRun::first_finish(Tally& tally) {
    if (one_process()) {
        tally.until_first = first_.work;
        return first_;
    }
    const RankRow& row = tally.rows.front();
    const std::uint64_t moment = team_->processes()->least(row.end);
    const std::lock_guard lock(glimpse_mutex_);
    tally.until_first = work_until(moment, row, glimpse_of_ == phase_.load() + 1 ? glimpse_ : Glimpse{});
    return {.at = moment, .work = {}};
}

// The rank's client goes by the thread it came by.
void PlanRun::part([[maybe_unused]] Rank rank) {
#ifdef STRAKES_CEPHFS
    if (workspace_.inside_ceph()) Ceph::disconnect(rank);
#endif
}

// By a client of its own, with nobody else in the way.
void PlanRun::clean_inside_ceph([[maybe_unused]] Rank rank) {
#ifdef STRAKES_CEPHFS
    if (rank == 0) left_ = CephPlace::empty(removed_);
    if (rank == 0 && !one_process()) swept_ = workspace_.remove();
    team_->barrier();
#endif
}

void PlanRun::clean(Rank rank) {
    if (request_.keep) return;
    progress_.of(rank).at("cleaning up");
    if (workspace_.inside_ceph()) return clean_inside_ceph(rank);
    if (!one_process()) return sweep();
    if (rank == 0) removal_ = std::make_unique<TreeRemoval>(workspace_.root(), workspace_.name(), removed_);
    team_->barrier();
    removal_->work(removal_pace());
}

// Removing is load, too; but somebody waits for the end of a plan that was cancelled.
Pace PlanRun::removal_pace() const {
    constexpr Stop kPatience{.rule = StopRule::seconds, .seconds = 5};
    const std::uint64_t start = clock_.now();
    const bool halted = halt_.load() != Halt::none;
    const std::uint64_t end = halted ? deadline_after(clock_, start, kPatience) : UINT64_MAX;
    return {request_.impact, team_->size(), clock_, nullptr, start, end};
}

// Of ranks that are processes: each takes its share of the entries, and rank 0 looks at what is left at the end.
void PlanRun::sweep() {
    TreeRemoval(workspace_.root(), workspace_.name(), removed_, {team_->first(), team_->size()}).work(removal_pace());
    const bool last = team_->first() == 0;
    if (!last) workspace_.close();
    team_->barrier();
    if (!last) return;
    removal_ = std::make_unique<TreeRemoval>(workspace_.root(), workspace_.name(), removed_);
    removal_->work();
    swept_ = workspace_.remove();
}

PlanStatus PlanRun::finish() {
    team_->join();
    if (team_->first() != 0) return early_.value_or(PlanStatus::ok);  // what there is to say rank 0 says
    if (early_) {
        report_.done(*early_, swept_, swept_ ? std::vector<std::string>{} : std::vector{request_.id});
        return *early_;
    }
    const bool cleaned = !request_.keep && (one_process() ? workspace_.remove() : swept_);
    PlanStatus status = halt_.load() == Halt::cancel ? PlanStatus::cancelled : PlanStatus::ok;
    if (report_.has_errors()) status = PlanStatus::failed;
    std::vector<std::string> left;
    if (!cleaned && !request_.keep) {
        left = removal_ ? removal_->left() : left_;
        if (left.empty()) left.push_back(request_.id);
        if (status == PlanStatus::ok) status = PlanStatus::failed;
    }
    report_.done(status, cleaned, left);
    return status;
}

}  // namespace strakes
