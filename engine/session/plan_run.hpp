// One plan from its directory to its removal: the team runs the phases, another thread watches and may cancel.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crew/beat.hpp"
#include "crew/crew.hpp"
#include "measure/clock.hpp"
#include "measure/second_rows.hpp"
#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "protocol/sample.hpp"
#include "system/buffer.hpp"
#include "team/team.hpp"
#include "workload/plan_state.hpp"
#include "workload/tally.hpp"
#include "workload/workload.hpp"
#include "workspace/tree_removal.hpp"
#include "workspace/workspace.hpp"

namespace strakes {

class PlanRun {
  public:
    using Rank = Team::Rank;

    // `news` is an event descriptor that becomes readable when the ranks of this process have finished.
    PlanRun(PlanRequest request, Output& output, Crew& crew, std::unique_ptr<Team> team, int news);
    ~PlanRun();
    PlanRun(const PlanRun&) = delete;
    PlanRun& operator=(const PlanRun&) = delete;

    // The status where the plan ended before it began: refused, or the target failed. Otherwise the team runs.
    [[nodiscard]] std::optional<PlanStatus> start();
    // The ranks of this process have.
    [[nodiscard]] bool finished() const noexcept { return finished_.load(); }
    // After that: says done.
    PlanStatus finish();

    // For the watching thread. In order: no further operation begins, everything is cleaned.
    void cancel() noexcept;
    // The limit has passed: names the slowest rank and cancels, unless the phases are over.
    void cancel_over_limit();
    void say_progress();
    // Of a rank that is a process and the first of its node, but not rank 0: keeps what happens there second by second.
    void look_at_node();
    // Changes whenever a rank gets anywhere.
    [[nodiscard]] std::uint64_t heartbeat() const noexcept;
    // The team does not come back: says which rank and done; the process must go then.
    void give_up();
    // As give_up, because another process has gone.
    void give_up(const Crew::Gone& gone);
    // Of a rank that is a process, when the one that would say so has gone: says that, on an output that is heard.
    void give_up_without_leader(Output& output) const;

    // What other processes have to know of the ranks here, and what they have said.
    [[nodiscard]] Beat beat() const;
    [[nodiscard]] Order order() const;
    void hear(const Order& order);
    void hear(Rank rank, const Beat& beat, const char* stage);
    void set_silent(Rank rank, bool silent) { progress_.of(rank).silent = silent; }

    [[nodiscard]] const PlanRequest& request() const noexcept { return request_; }

  private:
    [[nodiscard]] bool one_process() const noexcept { return team_->processes() == nullptr; }
    [[nodiscard]] bool is_first_here(Rank rank) const noexcept { return rank == team_->first(); }
    std::optional<PlanStatus> refuse(const Failure& failure, const std::string& key, PlanStatus status);
    [[nodiscard]] std::optional<Workspace::Fault> memory_fault() const;
    [[nodiscard]] std::optional<Workspace::Fault> fault_here() const;
    bool set_up(Rank rank);
    bool agreed(const std::optional<Workspace::Fault>& fault);
    void run_rank(Rank rank) noexcept;
    void hold_memory(Rank rank);
    void run_phase(Rank rank, std::size_t index);
    void begin(Rank rank, const Start& start);
    void work(Rank rank, Workload& workload, RankResult& result);
    void tell_others(Workload& workload);
    void note_first(const RankResult& result);
    void glimpse(std::size_t phase);
    void raise(Halt halt) noexcept;
    void report_phase(std::size_t index);
    // What a rank does in the phase at `index`.
    [[nodiscard]] const Phase& phase_of(std::size_t index, Rank rank) const {
        return request_.plan.phases[request_.plan.of_rank(index, rank)];
    }
    void add_rank(Tally& tally, Rank rank, const Phase& phase);
    void say_logs(std::size_t index);
    void take_logs(Tally& tally);
    [[nodiscard]] FirstFinish first_finish(Tally& tally);
    void clean(Rank rank);
    void clean_inside_ceph(Rank rank);
    void part(Rank rank);
    void sweep();
    [[nodiscard]] Pace removal_pace() const;
    [[nodiscard]] Rank slowest_rank() const noexcept;
    void report_rank(Rank rank, std::string what, std::string remedy);

    PlanRequest request_;
    Crew& crew_;
    std::unique_ptr<Team> team_;
    Timeline timeline_;
    const Clock& clock_ = timeline_.clock;
    Report report_;
    Workspace workspace_;
    PlanState state_;
    Gathered<Progress> progress_;  // of all ranks; those of other processes as they say
    Gathered<Latencies> latencies_;
    Gathered<RankResult> results_;
    Gathered<OperationLog> logs_;
    SecondRows seconds_;
    Buffer hog_;  // memory_hog_bytes
    std::unique_ptr<TreeRemoval> removal_;
    std::atomic<std::uint64_t> removed_{0};
    std::vector<std::string> left_;  // inside a Ceph file system
    int news_;

    std::atomic<Halt> halt_{Halt::none};
    std::atomic<std::size_t> phase_{0};          // that runs now
    std::atomic<std::uint64_t> phase_start_{0};  // ticks; 0 while no timed section runs
    std::atomic<bool> phases_over_{false};
    std::atomic<bool> first_taken_{false};
    std::atomic<std::size_t> finished_phases_{0};  // of the first rank of this process, for other processes
    std::atomic<std::size_t> glimpsed_phases_{0};  // up to which other processes have been told to look
    std::atomic<Rank> ranks_left_{0};
    std::atomic<bool> finished_{false};
    std::optional<PlanStatus> early_;  // it ended before its first phase
    bool swept_ = false;               // with ranks that are processes: nothing is left
    Start start_;                      // of the first rank here
    FirstFinish first_;
    std::mutex glimpse_mutex_;
    Glimpse glimpse_;
    std::size_t glimpse_of_ = 0;  // phase of it, from 1
    Counters counters_before_;
    CounterDelta counters_;
};

}  // namespace strakes
