// PlanWatch: state shared by the ranks of a running plan and the thread that watches them. All of it is atomic or
// protected by a mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "crew/beat.hpp"
#include "crew/crew.hpp"
#include "protocol/report.hpp"
#include "protocol/sample.hpp"
#include "team/team.hpp"
#include "workload/tally.hpp"
#include "workload/workload.hpp"

namespace strakes {

class PlanWatch {
  public:
    using Rank = Team::Rank;

    // `news` is an eventfd that becomes readable when the ranks of this process have finished.
    PlanWatch(const PlanRequest& request, Report& report, Crew& crew, Team& team, int news);

    // For the ranks of this process.
    [[nodiscard]] Progress& progress(Rank rank) { return progress_.of(rank); }
    [[nodiscard]] OperationLog& log(Rank rank) { return logs_.of(rank); }
    [[nodiscard]] Latencies& latencies(Rank rank) { return latencies_.of(rank); }
    [[nodiscard]] const std::atomic<Halt>& halt() const noexcept { return halt_; }
    // Number of files, directories and objects removed by the cleaning.
    [[nodiscard]] std::atomic<std::uint64_t>& removed() noexcept { return removed_; }
    void raise(Halt halt) noexcept;
    void clear(Rank rank);
    void finish_timed(Rank rank, std::uint64_t end);
    // The last call of each rank.
    void end_rank();

    // For the first rank of this process, between barriers.
    void begin_phase(std::size_t index);
    // Take over the clock offset that was measured at the start line. The offset stays fixed during a phase.
    void take_timeline();
    [[nodiscard]] const Timeline& timeline() const noexcept { return timeline_; }
    void begin_timed() { phase_start_ = timeline_.clock.now(); }
    void end_timed() { phase_start_ = 0; }
    // Return when the first of all ranks finished, and the work done until then: by all ranks if they are threads,
    // otherwise by this process (`row`).
    [[nodiscard]] FirstFinish first_finish(const RankRow& row);
    // Report the log rows that the ranks of this process added since the last call.
    void say_logs(std::size_t index);
    void end_phases() { phases_over_ = true; }

    // The rest is for the watching thread.
    // Whether all ranks of this process have finished.
    [[nodiscard]] bool finished() const noexcept { return finished_.load(); }
    // End the plan in order: no further operation begins, and all files are removed.
    void cancel() noexcept { raise(Halt::cancel); }
    // Called when the time limit has passed. Unless the phases are over, reports the slowest rank and cancels.
    void cancel_over_limit();
    void say_progress();
    // Return a number that changes whenever a rank makes progress.
    [[nodiscard]] std::uint64_t heartbeat() const noexcept;
    // Report the slowest rank and `done` when ranks do not return from their calls. The process must then exit.
    void give_up();
    // The same after the loss of another process.
    void give_up(const Crew::Gone& gone);
    // Report the loss of rank 0 if this is rank 1, otherwise return false. `ended` is false if rank 0 is only silent.
    [[nodiscard]] bool give_up_without_leader(Output& output, bool ended) const;

    // Messages to and from other processes.
    [[nodiscard]] Beat beat() const;
    [[nodiscard]] Order order() const;
    void hear(const Order& order);
    // Take the state of the ranks on another node. `first` is the lowest rank of the plan there.
    void hear(std::size_t node, const NodeBeat& beat);
    void set_silent(std::size_t node, bool silent, Rank first);

  private:
    // The progress of a rank.
    struct Standing {
        Rank rank = 0;
        bool silent = false;
        std::string stage;
        std::uint64_t operations = 0;
    };
    // The state of the ranks on another node.
    struct OtherNode {
        NodeBeat beat;
        bool silent = false;
        Rank first = 0;
    };

    [[nodiscard]] Standing slowest_rank() const;
    [[nodiscard]] bool is_here(const NodeBeat& beat) const noexcept { return beat.phase == phase_.load() + 1; }
    void report_rank(const Standing& standing, std::string what, std::string remedy);
    void glimpse(std::size_t phases);

    const PlanRequest& request_;
    Report& report_;
    Crew& crew_;
    Team& team_;
    int news_;
    Timeline timeline_;
    Gathered<Progress> progress_;    // of the ranks of this process
    std::vector<OtherNode> others_;  // by node; only at rank 0, for its watching thread
    Gathered<OperationLog> logs_;
    Gathered<Latencies> latencies_;

    std::atomic<Halt> halt_{Halt::none};
    std::atomic<std::size_t> phase_{0};          // index of the running phase
    std::atomic<std::uint64_t> phase_start_{0};  // ticks; 0 outside timed sections
    std::atomic<bool> phases_over_{false};
    std::atomic<std::uint64_t> removed_{0};
    std::atomic<Rank> ranks_left_;
    std::atomic<bool> finished_{false};

    std::atomic<bool> first_taken_{false};
    FirstFinish first_;                            // if ranks are threads
    std::atomic<std::size_t> finished_phases_{0};  // completed by the rank of this process
    std::atomic<std::size_t> glimpsed_phases_{0};  // whose first finish is known in this process
    std::mutex glimpse_mutex_;
    Glimpse glimpse_;
    std::size_t glimpse_of_ = 0;  // its phase, from 1
};

}  // namespace strakes
