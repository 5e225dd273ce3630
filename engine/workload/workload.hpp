// Interface of all workloads: the steps of one rank around its timed section. Only these steps are virtual calls; the
// loops inside run() are templates over a backend.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/library_file.hpp"
#include "measure/clock.hpp"
#include "measure/histogram.hpp"
#include "plan/kind.hpp"
#include "plan/plan.hpp"
#include "system/buffer.hpp"
#include "system/failure.hpp"
#include "system/queries.hpp"
#include "team/exchange.hpp"
#include "team/pace.hpp"
#include "workload/operation_log.hpp"
#include "workload/plan_state.hpp"

namespace strakes {

// Progress of a rank, visible to other threads: counters in a separate cache line, without locks.
struct alignas(64) Progress {
    std::atomic<std::uint64_t> operations{0};
    std::atomic<std::uint64_t> bytes{0};
    // A string with static storage duration: the current stage, for the message about a rank that hangs.
    std::atomic<const char*> stage{"starting"};
    std::atomic<bool> finished{false};  // whether the timed section is over

    void at(const char* what) noexcept { stage.store(what, std::memory_order_relaxed); }
    // Called after each operation. There is one writer, so no atomic addition is needed.
    void publish(std::uint64_t total_operations, std::uint64_t total_bytes) noexcept {
        operations.store(total_operations, std::memory_order_relaxed);
        bytes.store(total_bytes, std::memory_order_relaxed);
    }
};

// Stage of a rank that waits for other ranks. A rank in any other stage may be the one that hangs.
inline constexpr const char* kWaiting = "waiting for the other ranks";

// Context of a phase, the same for all ranks.
struct PhaseSetting {
    const Plan& plan;
    std::size_t index;
    PlanState& state;
    int root;                 // descriptor of the plan's directory
    const std::string& name;  // name of the plan's directory, for messages
    const Clock& clock;
    const std::atomic<Halt>& halt;
    Impact impact{};

    [[nodiscard]] const Phase& phase() const { return plan.phases[index]; }
    [[nodiscard]] PhaseSetting at(std::size_t other) const {
        return {plan, other, state, root, name, clock, halt, impact};
    }
    [[nodiscard]] bool halted() const noexcept { return halt.load(std::memory_order_relaxed) != Halt::none; }
    // Return the pace of one of the `sharers` ranks that keep the file system busy in this phase. The pace has no
    // deadline: it also delays ranks after the phase's time is over, so that even a short phase stays below the limit.
    [[nodiscard]] Pace pace(std::uint64_t start, std::uint32_t sharers) const noexcept {
        return {impact, sharers, clock, &halt, start, UINT64_MAX};
    }
    [[nodiscard]] std::string path_of(std::string_view entry) const { return name + "/" + std::string(entry); }
    // Allocate memory of the calling rank, in the kind of pages that the plan requests.
    [[nodiscard]] std::optional<Failure> make(Buffer& buffer, std::uint64_t bytes) const;
};

struct Latencies {
    Histogram calls;
    std::unique_ptr<Histogram> reads;  // latencies of reads with the operation mixed; those of writes are in `calls`
    std::unique_ptr<Histogram> waits;  // writers: for a piece; probes: from due to begun; training: for a batch
    std::vector<Histogram> of_flow;    // small files: a histogram for each FlowCall, in place of all others

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.calls, self.reads, self.waits, self.of_flow);
    }

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

    // All histograms. of_kind() returns null for a histogram that does not exist.
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

// Resources of one rank.
struct Seat {
    std::uint32_t rank;
    Progress& progress;
    Latencies& latencies;
    bool leads_node = rank == 0;
    bool one_process = true;  // whether all ranks are threads of this process, on one machine
    OperationLog* log = nullptr;
    Exchange* exchange = nullptr;
    LibraryFiles* libraries = nullptr;  // null if the ranks are threads
    // Halts all ranks. Called by a rank that fails in a step where the others would wait for this rank.
    std::function<void()> alarm = {};  // NOLINT(readability-redundant-member-init)
};

// Page-cache residency of the set's files, summed over the nodes that examine them.
struct CacheState {
    std::string method = "none";
    std::uint64_t file_bytes = 0;
    std::uint64_t resident_before_bytes = 0;
    std::uint64_t resident_after_bytes = 0;
    std::uint64_t error_bytes = 0;  // maximum error of either value; 0 without sampling

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.method, self.file_bytes, self.resident_before_bytes, self.resident_after_bytes, self.error_bytes);
    }

    void add(const CacheState& other) {
        if (method == "none") method = other.method;
        error_bytes += other.error_bytes;
        file_bytes += other.file_bytes;
        resident_before_bytes += other.resident_before_bytes;
        resident_after_bytes += other.resident_after_bytes;
    }
};

struct PoolCount {
    std::uint64_t before_files = 0;
    std::uint64_t after_files = 0;
    std::uint64_t bytes = 0;  // size of the files that this plan made
    std::uint64_t loops = 0;  // number of transactions, or of iterations of the flow

    void add(const PoolCount& other) noexcept {
        before_files += other.before_files;
        after_files += other.after_files;
        bytes += other.bytes;
        loops += other.loops;
    }
};

struct Listed {
    std::uint64_t directories = 0;  // number of directories read
    std::uint64_t matches = 0;      // number of matches of find

    void add(const Listed& other) noexcept {
        directories += other.directories;
        matches += other.matches;
    }
};

// Accelerator time in an epoch.
struct Trained {
    std::uint64_t ranks = 0;
    std::uint64_t steps = 0;
    std::uint64_t compute_ns = 0;  // computing time of all steps
    std::uint64_t wait_ns = 0;     // time of waiting for batches
    double utilisation = 0;        // utilisation of the accelerator, sum over all ranks

    void add(const Trained& other) noexcept {
        ranks += other.ranks;
        steps += other.steps;
        compute_ns += other.compute_ns;
        wait_ns += other.wait_ns;
        utilisation += other.utilisation;
    }
};

// Results that are added up over the ranks.
struct PhaseDetails {
    std::uint64_t verified_bytes = 0;
    std::uint64_t read_bytes = 0;   // bytes read from the file system (stage, small-files)
    std::uint64_t held_ns = 0;      // time for which load limits delayed the rank
    std::uint32_t queue_depth = 0;  // maximum number of requests in flight
    bool out_of_time = false;       // whether the deadline of the stop rule ended the phase
    bool direct = true;             // whether O_DIRECT is set, as read back from the descriptors
    CacheState cache;
    PoolCount pool;
    Listed listed;
    Trained trained;
    Hints hints;  // hints in effect; not packed, because only rank 0 reports them

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.verified_bytes, self.read_bytes, self.held_ns, self.queue_depth, self.out_of_time, self.direct,
                self.cache, self.pool, self.listed, self.trained);
    }

    void add(const PhaseDetails& other) {
        verified_bytes += other.verified_bytes;
        read_bytes += other.read_bytes;
        held_ns += other.held_ns;
        queue_depth = std::max(queue_depth, other.queue_depth);
        out_of_time |= other.out_of_time;
        direct &= other.direct;
        cache.add(other.cache);
        pool.add(other.pool);
        listed.add(other.listed);
        trained.add(other.trained);
        if (hints.empty()) hints = other.hints;
    }
};

// Results of one rank in one phase. Times without a unit are in ticks.
struct RankResult : PhaseDetails {
    RankResult() {
        queue_depth = 1;
        direct = false;
    }

    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;
    std::uint64_t slowest = 0;
    std::uint64_t slowest_ns = 0;         // a probe's longest latency since the due time
    std::uint64_t failed_operations = 0;  // number of failures that did not end the phase
    std::uint64_t open = 0;
    std::uint64_t close = 0;
    std::uint64_t data = 0;  // time of generating and verifying data
    ThreadTimes processor;
    std::optional<Failure> failure;
};

class Workload {
  public:
    Workload() = default;
    Workload(const Workload&) = delete;
    Workload& operator=(const Workload&) = delete;
    virtual ~Workload() = default;

    using Outcome = std::optional<Failure>;

    // Called by rank 0, before the other ranks prepare. In a metadata phase, by the first rank in each directory.
    virtual Outcome lead() = 0;
    // Called by the first rank of every process, after any lead() of this rank. Updates the plan's state for this
    // phase.
    virtual void declare() {}
    // Called by every rank, before the barrier that starts the timed section.
    virtual Outcome prepare(RankResult& result) = 0;
    // The timed section. Sets start, end and any failure, and modifies only its own result.
    virtual void run(RankResult& result) = 0;
    // Called by every rank after the timed section, even if the timed section failed. Records the state for later
    // phases, closes files and examines the cache.
    virtual void finish(RankResult& result) = 0;

    // If ranks are processes, they exchange their changes of the plan's state after finish(), as bytes.
    [[nodiscard]] virtual std::string tell() const { return {}; }
    virtual void learn(std::string_view /*told*/) {}
};

// Return the workload of a phase for one rank. A new kind is one line in this registry.
std::unique_ptr<Workload> make_workload(const PhaseSetting& setting, const Seat& seat);

// Return the clock reading after which a phase that begins at `start` begins no operation. UINT64_MAX for the rule
// `amount`.
std::uint64_t deadline_after(const Clock& clock, std::uint64_t start, const Stop& stop) noexcept;

// A workload that passes its failures to Io::explain(), which adds the server's message.
template <class Inner, class Io>
class Explained final : public Inner {
  public:
    Explained(const PhaseSetting& setting, const Seat& seat) : Inner(setting, seat), rank_(seat.rank) {}

    Workload::Outcome lead() override { return explained(Inner::lead()); }
    Workload::Outcome prepare(RankResult& result) override { return explained(Inner::prepare(result)); }
    void run(RankResult& result) override {
        Inner::run(result);
        result.failure = explained(std::move(result.failure));
    }
    void finish(RankResult& result) override {
        const bool before = result.failure.has_value();
        Inner::finish(result);
        if (!before) result.failure = explained(std::move(result.failure));
    }

  private:
    Workload::Outcome explained(Workload::Outcome outcome) const {
        if (outcome) Io::explain(rank_, *outcome);
        return outcome;
    }

    std::uint32_t rank_;
};

std::unique_ptr<Workload> make_listing(const PhaseSetting& setting, const Seat& seat);
std::unique_ptr<Workload> make_metadata(const PhaseSetting& setting, const Seat& seat);
std::unique_ptr<Workload> make_mixed(const PhaseSetting& setting, const Seat& seat);
std::unique_ptr<Workload> make_probe(const PhaseSetting& setting, const Seat& seat);
std::unique_ptr<Workload> make_small_files(const PhaseSetting& setting, const Seat& seat);
std::unique_ptr<Workload> make_stage(const PhaseSetting& setting, const Seat& seat);
std::unique_ptr<Workload> make_training(const PhaseSetting& setting, const Seat& seat);
std::unique_ptr<Workload> make_transfer(const PhaseSetting& setting, const Seat& seat);
std::unique_ptr<Workload> make_library_transfer(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
