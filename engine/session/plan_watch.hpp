// What the ranks of a running plan and the thread that watches them have between them. All that both of them touch is
// here, atomic or behind a mutex: how far every rank is, what halts them, what others have to know.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "crew/beat.hpp"
#include "crew/crew.hpp"
#include "measure/second_rows.hpp"
#include "protocol/report.hpp"
#include "protocol/sample.hpp"
#include "team/team.hpp"
#include "workload/latency_rows.hpp"
#include "workload/tally.hpp"
#include "workload/workload.hpp"

namespace strakes {

class PlanWatch {
  public:
    using Rank = Team::Rank;

    // `news` is an event descriptor that becomes readable when the ranks of this process have finished.
    PlanWatch(const PlanRequest& request, Report& report, Crew& crew, Team& team, int news);

    // For the ranks of this process.
    [[nodiscard]] Progress& progress(Rank rank) { return progress_.of(rank); }
    [[nodiscard]] OperationLog& log(Rank rank) { return logs_.of(rank); }
    [[nodiscard]] Latencies& latencies(Rank rank) { return latencies_.of(rank); }
    [[nodiscard]] const std::atomic<Halt>& halt() const noexcept { return halt_; }
    // Counts what was removed at the end.
    [[nodiscard]] std::atomic<std::uint64_t>& removed() noexcept { return removed_; }
    void raise(Halt halt) noexcept;
    void clear(Rank rank);
    void finish_timed(Rank rank, std::uint64_t end);
    // Of each of them, the last of all.
    void end_rank();

    // For the first of them, between barriers.
    void begin_phase(std::size_t index);
    // Clocks may have been compared again at the start line; for one phase they stand as they stood there.
    void take_timeline();
    [[nodiscard]] const Timeline& timeline() const noexcept { return timeline_; }
    void begin_timed();
    void end_timed();
    // When the first of all ranks finished, and what those of this process, `row`, had done until then.
    [[nodiscard]] FirstFinish first_finish(const RankRow& row);
    [[nodiscard]] std::vector<SecondRow> take_seconds(std::size_t index) { return seconds_.take(index + 1); }
    // Of each part of the phase that has ended, those of the ranks of this process.
    [[nodiscard]] std::vector<LatencyRows> take_latency_rows() { return latencies_.take(); }
    // Of the ranks of this process, what has come since the last time.
    void say_logs(std::size_t index);
    void end_phases() { phases_over_ = true; }

    // For the watching thread.
    // The ranks of this process have.
    [[nodiscard]] bool finished() const noexcept { return finished_.load(); }
    // In order: no further operation begins, everything is cleaned.
    void cancel() noexcept { raise(Halt::cancel); }
    // The limit has passed: names the slowest rank and cancels, unless the phases are over.
    void cancel_over_limit();
    void say_progress();
    // Of ranks that are other processes than rank 0's: keeps what they do second by second, and what happens on the
    // node that one of them is the first of.
    void look_here();
    // Changes whenever a rank gets anywhere.
    [[nodiscard]] std::uint64_t heartbeat() const noexcept;
    // The team does not come back: says which rank and done; the process must go then.
    void give_up();
    // As give_up, because another process has gone.
    void give_up(const Crew::Gone& gone);
    // Of a rank that is a process, when the one that would say so has gone, or does not answer: says that, on an output
    // that is heard. Only rank 1 does; false for the others.
    [[nodiscard]] bool give_up_without_leader(Output& output, bool ended) const;

    // What other processes have to know of the ranks here, and what they have said.
    [[nodiscard]] Beat beat() const;
    [[nodiscard]] Order order() const;
    void hear(const Order& order);
    // Of the ranks of a node that are other processes; `first` of the plan is the first of them.
    void hear(std::size_t node, const NodeBeat& beat);
    void set_silent(std::size_t node, bool silent, Rank first);

  private:
    // A rank and how far it is.
    struct Standing {
        Rank rank = 0;
        bool silent = false;
        std::string stage;
        std::uint64_t operations = 0;
    };
    // What the ranks of a node that are other processes have come to.
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
    std::vector<OtherNode> others_;  // by node; of the watching thread of rank 0
    Gathered<OperationLog> logs_;
    SecondRows seconds_;
    LatencyWatch latencies_;

    std::atomic<Halt> halt_{Halt::none};
    std::atomic<std::size_t> phase_{0};          // that runs now
    std::atomic<std::uint64_t> phase_start_{0};  // ticks; 0 while no timed section runs
    std::atomic<bool> phases_over_{false};
    std::atomic<std::uint64_t> removed_{0};
    std::atomic<Rank> ranks_left_;
    std::atomic<bool> finished_{false};

    std::atomic<bool> first_taken_{false};
    FirstFinish first_;                            // where the ranks are threads
    std::atomic<std::size_t> finished_phases_{0};  // of the first rank of this process, for other processes
    std::atomic<std::size_t> glimpsed_phases_{0};  // up to which other processes have been told to look
    std::mutex glimpse_mutex_;
    Glimpse glimpse_;
    std::size_t glimpse_of_ = 0;  // phase of it, from 1
};

}  // namespace strakes
