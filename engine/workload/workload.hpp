// What every kind of phase offers: the steps of one rank around its timed section. Calls between these steps are the
// only virtual ones; loops inside run() are templates over a backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/library_file.hpp"
#include "measure/clock.hpp"
#include "measure/histogram.hpp"
#include "plan/impact.hpp"
#include "plan/plan.hpp"
#include "system/buffer.hpp"
#include "system/failure.hpp"
#include "team/exchange.hpp"
#include "team/pace.hpp"
#include "workload/operation_log.hpp"
#include "workload/plan_state.hpp"
#include "workload/progress.hpp"

namespace strakes {

// Everything around a phase; the same for all ranks.
struct PhaseSetting {
    const Plan& plan;
    std::size_t index;
    PlanState& state;
    int root;                 // directory descriptor of the plan's own directory
    const std::string& name;  // of that directory, for messages
    const Clock& clock;
    const std::atomic<Halt>& halt;
    Impact impact{};

    [[nodiscard]] const Phase& phase() const { return plan.phases[index]; }
    // That of another phase of the plan.
    [[nodiscard]] PhaseSetting at(std::size_t other) const {
        return {plan, other, state, root, name, clock, halt, impact};
    }
    [[nodiscard]] bool halted() const noexcept { return halt.load(std::memory_order_relaxed) != Halt::none; }
    // Of one of the ranks that keep the file system busy in this phase. What was done is paid for also when the phase's
    // time is over: however short it is, its rate is not above the limit.
    [[nodiscard]] Pace pace(std::uint64_t start, std::uint32_t sharers) const noexcept {
        return {impact, sharers, clock, &halt, start, UINT64_MAX};
    }
    [[nodiscard]] std::string path_of(std::string_view entry) const { return name + "/" + std::string(entry); }
    // Memory of the calling rank, of such pages as the plan wants.
    [[nodiscard]] std::optional<Failure> make(Buffer& buffer, std::uint64_t bytes) const;
};

// Of a phase's calls.
struct Latencies {
    Histogram calls;
    std::unique_ptr<Histogram> reads;  // of a mixed phase, whose other calls are its writes
    std::unique_ptr<Histogram> waits;  // of writers for a piece; of probes from due to begun; of training for a batch
    std::vector<Histogram> of_flow;    // of a small-files phase: one for each FlowCall, in place of all others

    void clear() noexcept {
        calls.clear();
        reads.reset();
        waits.reset();
        of_flow.clear();
    }
    void merge(const Latencies& other) {
        calls.merge(other.calls);
        if (of_flow.size() < other.of_flow.size()) of_flow.resize(other.of_flow.size());
        for (std::size_t i = 0; i < other.of_flow.size(); ++i) of_flow[i].merge(other.of_flow[i]);
        merge(reads, other.reads);
        merge(waits, other.waits);
    }

    // All of them in one row; null where there is none.
    static constexpr std::uint8_t kCalls = 0, kReads = 1, kWaits = 2, kFirstOfFlow = 3;
    [[nodiscard]] std::uint8_t kinds() const noexcept {
        return static_cast<std::uint8_t>(kFirstOfFlow + of_flow.size());
    }
    [[nodiscard]] const Histogram* of_kind(std::uint8_t kind) const noexcept {
        if (kind == kCalls) return &calls;
        if (kind == kReads) return reads.get();
        if (kind == kWaits) return waits.get();
        return kind < kinds() ? &of_flow[kind - kFirstOfFlow] : nullptr;
    }

  private:
    static void merge(std::unique_ptr<Histogram>& into, const std::unique_ptr<Histogram>& other) {
        if (!other) return;
        if (!into) into = std::make_unique<Histogram>();
        into->merge(*other);
    }
};

// What one rank has to do with.
struct Seat {
    std::uint32_t rank;
    Progress& progress;
    Latencies& latencies;
    bool leads_node = rank == 0;  // the first of its node
    bool one_process = true;      // all ranks are threads of this process, on one node
    OperationLog* log = nullptr;
    Exchange* exchange = nullptr;       // with the other ranks
    LibraryFiles* libraries = nullptr;  // where ranks are processes
    // Halts all ranks, for one that fails where the others would wait for it.
    std::function<void()> alarm = {};  // NOLINT(readability-redundant-member-init)
};

// Page cache of the set's files, on every node that looks at them.
struct CacheState {
    std::string method = "none";
    std::uint64_t file_bytes = 0;
    std::uint64_t resident_before_bytes = 0;
    std::uint64_t resident_after_bytes = 0;
    std::uint64_t error_bytes = 0;  // of each, at most, where they are samples

    void add(const CacheState& other) {
        if (method == "none") method = other.method;
        error_bytes += other.error_bytes;
        file_bytes += other.file_bytes;
        resident_before_bytes += other.resident_before_bytes;
        resident_after_bytes += other.resident_after_bytes;
    }
};

// What became of a pool of small files.
struct PoolCount {
    std::uint64_t before_files = 0;
    std::uint64_t after_files = 0;
    std::uint64_t bytes = 0;  // of the files this plan made
    std::uint64_t loops = 0;  // transactions, or runs through the flow

    void add(const PoolCount& other) noexcept {
        before_files += other.before_files;
        after_files += other.after_files;
        bytes += other.bytes;
        loops += other.loops;
    }
};

// What a phase that goes over directories came by.
struct Listed {
    std::uint64_t directories = 0;  // that were read
    std::uint64_t matches = 0;      // of find

    void add(const Listed& other) noexcept {
        directories += other.directories;
        matches += other.matches;
    }
};

// What accelerators would have had of an epoch.
struct Trained {
    std::uint64_t ranks = 0;
    std::uint64_t steps = 0;
    std::uint64_t compute_ns = 0;  // all steps
    std::uint64_t wait_ns = 0;     // for batches
    double utilisation = 0;        // shares of time, added up over the ranks

    void add(const Trained& other) noexcept {
        ranks += other.ranks;
        steps += other.steps;
        compute_ns += other.compute_ns;
        wait_ns += other.wait_ns;
        utilisation += other.utilisation;
    }
};

// What one rank did in one phase; times are ticks.
struct RankResult {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;
    std::uint64_t slowest = 0;
    std::uint64_t slowest_ns = 0;         // of a probe, from the moment it was due
    std::uint64_t failed_operations = 0;  // that did not end the phase
    std::uint64_t read_bytes = 0;         // of a stage: from the file system
    std::uint64_t open = 0;
    std::uint64_t close = 0;
    std::uint64_t verified_bytes = 0;
    std::uint64_t data = 0;         // of a transfer's time: spent on making and verifying its data
    std::uint64_t held_ns = 0;      // back, to keep within the impact
    std::uint32_t queue_depth = 1;  // most requests that were under way at a time
    bool out_of_time = false;       // stopped by the seconds of its rule
    bool direct = false;            // as read back from the descriptor
    CacheState cache;
    PoolCount pool;
    Listed listed;
    Trained trained;
    Hints hints;  // in effect; of rank 0
    std::optional<Failure> failure;
};

class Workload {
  public:
    Workload() = default;
    Workload(const Workload&) = delete;
    Workload& operator=(const Workload&) = delete;
    virtual ~Workload() = default;

    using Outcome = std::optional<Failure>;

    // Rank 0 alone, before the others prepare.
    virtual Outcome lead() = 0;
    // The first rank of every process, after rank 0 has led: what the plan's state says from now on.
    virtual void declare() {}
    // Every rank, before the barrier that starts the timed section.
    virtual Outcome prepare(RankResult& result) = 0;
    // The timed section. Sets start and end, and failure where there is one; touches nothing but its own result.
    virtual void run(RankResult& result) = 0;
    // Every rank, after the timed section, also after a failure: leaves the state for later phases, closes, looks.
    virtual void finish(RankResult& result) = 0;

    // Ranks that are processes tell each other after that what this rank has left in the plan's state, as bytes.
    [[nodiscard]] virtual std::string tell() const { return {}; }
    virtual void learn(std::string_view /*told*/) {}
};

// The workload of a phase for one rank. The registry: a new kind is one line there.
std::unique_ptr<Workload> make_workload(const PhaseSetting& setting, const Seat& seat);

// The clock's reading after which nothing new begins, for a phase that starts now; never for the rule amount.
std::uint64_t deadline_after(const Clock& clock, std::uint64_t start, const Stop& stop) noexcept;

}  // namespace strakes
