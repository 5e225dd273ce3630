// Pools of small files: filled, changed by transactions or a list of operations, and emptied.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "backend/posix.hpp"
#include "system/buffer.hpp"
#include "workload/plan_state.hpp"
#include "workload/pool_calls.hpp"
#include "workload/workload.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostWriteBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kLongestItem = 99'999'999'999'999;  // Largest file number. first_item is at most 2^40.

template <class Io>
class SmallFiles final : public Workload {
  public:
    SmallFiles(const PhaseSetting& setting, const Seat& seat)
        : setting_(setting),
          seat_(seat),
          phase_(std::get<SmallFilesPhase>(setting.phase())),
          set_(setting.state.pools.at(phase_.files)),
          pool_(set_.pools.at(seat.rank)),
          rule_(phase_, setting.plan, set_.number, seat.rank) {}

    Outcome lead() override { return std::nullopt; }

    Outcome prepare(RankResult& result) override {
        seat_.progress.at("preparing");
        seat_.latencies.of_flow.resize(kFlowCalls.size());
        result.pool.before_files = phase_.first_item + pool_.count();
        if (Outcome failure = open_directories()) return failure;
        if (setting_.halted()) return std::nullopt;  // After a halt, the directories may be incomplete.
        if (Outcome failure = list()) return failure;
        return setting_.make(buffer_, std::min(largest_unit(), kMostWriteBytes));
    }

    void run(RankResult& result) override {
        seat_.progress.at("operating");
        PoolCalls<Io> calls(rule_, directories_, buffer_.bytes(), ItemName(false, seat_.rank, kLongestItem),
                            phase_.verify);
        result.start = before_ = setting_.clock.now();
        deadline_ = deadline_after(setting_.clock, result.start, phase_.stop);
        pace_ = setting_.pace(result.start, setting_.plan.ranks);
        const PoolFault fault = work(calls, result);
        if (!fault && phase_.syncfs) {
            seat_.progress.at("syncfs");
            if (::syncfs(setting_.root) != 0)
                result.failure = call_failure("syncfs", setting_.path_of(directory_name()), errno);
        }
        result.end = setting_.clock.now();
        calls.leave();
        result.verified_bytes = calls.verified_bytes();
        if (fault) result.failure = describe_call(fault, calls);
    }

    void finish(RankResult& result) override {
        seat_.progress.at("closing");
        result.pool.after_files = phase_.first_item + pool_.count();
        result.pool.bytes = pool_.bytes;
        directories_.clear();
        buffer_ = Buffer();
    }

  private:
    using enum SmallFilesMode;

    [[nodiscard]] std::string directory_name() const { return entry_of(phase_, seat_.rank); }
    [[nodiscard]] std::uint64_t largest_unit() const noexcept {
        std::uint64_t largest = std::max(phase_.read_unit_bytes, phase_.write_unit_bytes);
        for (const FlowOperation& operation : phase_.flow) largest = std::max(largest, operation.unit_bytes);
        return largest;
    }

    Outcome open_directories() {
        Descriptor top;
        if (Outcome failure = open_directory(setting_.root, directory_name(), top)) return failure;
        const std::uint64_t below = phase_.subdirectories;
        directories_.reserve(std::max<std::uint64_t>(below, 1));
        for (std::uint64_t i = 0; i < below && !setting_.halted(); ++i) {
            Descriptor directory;
            if (Outcome failure = open_directory(top.get(), "s" + std::to_string(i), directory)) return failure;
            directories_.push_back(std::move(directory));
        }
        if (below == 0) directories_.push_back(std::move(top));
        pool_.made = true;
        return std::nullopt;
    }

    // The first phase of the pool creates the directory.
    Outcome open_directory(int parent, const std::string& name, Descriptor& into) const {
        const auto failed = [&](const char* call, int error) {
            const std::string path = directory_name() + (parent == setting_.root ? "" : "/" + name);
            return call_failure(call, setting_.path_of(path), error);
        };
        if (!pool_.made)
            if (const int error = Io::make_directory(parent, name.c_str()); error != 0 && error != EEXIST)
                return failed("mkdir", error);
        const auto [descriptor, error] = Io::enter(parent, name.c_str());
        if (error == 0) {
            into = Descriptor(descriptor);
            return std::nullopt;
        }
        Failure failure = failed("open", error);
        if (error == EMFILE)
            failure.remedy = "Raise the limit of open files (ulimit -n) or use fewer subdirectories: each stays open.";
        return failure;
    }

    // Files that are created and removed in any order need a list. Its capacity is reserved, so that the timed section
    // allocates nothing.
    Outcome list() {
        const bool random = phase_.mode == transactions || phase_.mode == flow;
        if (!random && !pool_.listed) return std::nullopt;
        std::uint64_t more = phase_.files_per_rank;
        if (phase_.mode == transactions) more = pool_.count();
        if (phase_.mode == flow) more = growth();
        try {
            pool_.files.reserve(pool_.count() + more);
        } catch (const std::bad_alloc&) {
            Failure failure = call_failure("malloc", "", ENOMEM);
            failure.what = "there is no memory for the list of " + std::to_string(pool_.count() + more) + " files";
            failure.remedy = "Use fewer files per rank, or fewer ranks.";
            return failure;
        }
        room_ = pool_.count() + more;
        if (!pool_.listed)
            for (std::uint64_t item = pool_.first; item < pool_.next; ++item)
                pool_.files.push_back({.item = item, .size_bytes = rule_.size_of(item)});
        pool_.listed = true;
        if (!random || pool_.files.size() > least()) return std::nullopt;
        return Failure{
            .what = "the pool '" + phase_.files + "' has too few files left: " + std::to_string(pool_.files.size()),
            .path = setting_.path_of(directory_name()),
            .why = "the phase needs more than " + std::to_string(least()) + " to choose from",
            .remedy = "Let accumulate add more files, and do not end accumulate or remove early."};
    }

    [[nodiscard]] std::uint64_t flow_count(FlowCall call) const noexcept {
        return static_cast<std::uint64_t>(std::ranges::count(phase_.flow, call, &FlowOperation::call));
    }
    // Return the growth of the list: the files that all loops leave, plus the files that one loop creates.
    [[nodiscard]] std::uint64_t growth() const noexcept {
        const std::uint64_t created = flow_count(FlowCall::create);
        return phase_.transactions * (created - flow_count(FlowCall::remove)) + created;
    }
    // Return the number of files that the pool must exceed, so that each deletion leaves a file.
    [[nodiscard]] std::uint64_t least() const noexcept { return flow_count(FlowCall::remove); }

    PoolFault work(PoolCalls<Io>& calls, RankResult& result) {
        switch (phase_.mode) {
            case accumulate:
                return fill_pool(calls, result);
            case transactions:
                return transact(calls, result);
            case remove:
                return empty_pool(calls, result);
            case flow:
                return loop_flow(calls, result);
        }
        return {};
    }

    // Return whether to begin another operation. Called while operations remain, so out_of_time means unfinished work.
    bool goes_on(RankResult& result) const noexcept {
        if (setting_.halted()) return false;
        result.out_of_time = before_ >= deadline_;
        return !result.out_of_time;
    }

    // Record an operation. Reads the clock once.
    void note(FlowCall call, std::uint64_t bytes, RankResult& result) noexcept {
        const std::uint64_t now = setting_.clock.now();
        const std::uint64_t took = elapsed(before_, now);
        seat_.latencies.of_flow[static_cast<std::size_t>(call)].record(setting_.clock.to_ns(took));
        if (took > result.slowest) result.slowest = took;
        ++result.operations;
        result.bytes += bytes;
        if (call == FlowCall::read) result.read_bytes += bytes;
        seat_.progress.publish(result.operations, result.bytes);
        before_ = now;
        if (!pace_.on()) return;
        before_ = pace_.hold(now, {.operations = 1, .bytes = bytes, .ticks = took});
        result.held_ns = pace_.held_ns();
    }

    PoolFault create(PoolCalls<Io>& calls, RankResult& result) {
        const std::uint64_t item = pool_.next;
        const std::uint64_t bytes = rule_.size_of(item);
        if (PoolFault fault = calls.create_whole(item, bytes, phase_.write_unit_bytes)) return fault;
        add({.item = item, .size_bytes = bytes});
        note(FlowCall::create, bytes, result);
        return {};
    }
    void add(const PoolFile& file) {
        ++pool_.next;
        pool_.bytes += file.size_bytes;
        if (pool_.listed) pool_.files.push_back(file);
    }

    PoolFault remove_at(std::uint64_t index, PoolCalls<Io>& calls, RankResult& result) {
        PoolFile& file = pool_.files[index];
        if (PoolFault fault = calls.remove(file.item)) return fault;
        pool_.bytes -= file.size_bytes;
        file = pool_.files.back();
        pool_.files.pop_back();
        note(FlowCall::remove, 0, result);
        return {};
    }

    PoolFault fill_pool(PoolCalls<Io>& calls, RankResult& result) {
        for (std::uint64_t left = phase_.files_per_rank; left > 0 && goes_on(result); --left)
            if (PoolFault fault = create(calls, result)) return fault;
        return {};
    }

    PoolFault empty_pool(PoolCalls<Io>& calls, RankResult& result) {
        while (pool_.listed && !pool_.files.empty() && goes_on(result))
            if (PoolFault fault = remove_at(pool_.files.size() - 1, calls, result)) return fault;
        while (!pool_.listed && pool_.first < pool_.next && goes_on(result)) {
            if (PoolFault fault = calls.remove(pool_.first)) return fault;
            pool_.bytes -= rule_.size_of(pool_.first++);
            note(FlowCall::remove, 0, result);
        }
        return {};
    }

    // Seeded random choices. The n-th choice in a phase is the same in every run.
    class Choices {
      public:
        explicit Choices(std::uint64_t key) noexcept : key_(key) {}
        std::uint64_t below(std::uint64_t range) noexcept { return scaled(mix(key_ + n_++), range); }
        bool percent(std::uint32_t share) noexcept { return below(100) < share; }

      private:
        std::uint64_t key_;
        std::uint64_t n_ = 0;
    };

    // Transactions of Postmark (Katcher 1997): each reads or appends, then creates or deletes. Files of the largest
    // size are not extended. A full pool (twice its initial size) only shrinks, and a pool of one file only grows.
    PoolFault transact(PoolCalls<Io>& calls, RankResult& result) {
        Choices choices(rule_.key_of_phase(setting_.index));
        const bool endless = phase_.stop.rule == StopRule::seconds;
        for (std::uint64_t done = 0; (endless || done < phase_.transactions) && goes_on(result); ++done) {
            PoolFile& file = pool_.files[choices.below(pool_.files.size())];
            if (choices.percent(phase_.read_percent)) {
                if (PoolFault fault = calls.read_whole(file, phase_.read_unit_bytes)) return fault;
                note(FlowCall::read, file.size_bytes, result);
            } else if (file.size_bytes < phase_.size_high_bytes) {
                const std::uint64_t bytes = 1 + choices.below(phase_.size_high_bytes - file.size_bytes);
                if (PoolFault fault = calls.append_whole(file, bytes, phase_.write_unit_bytes)) return fault;
                grow(file, file.size_bytes + bytes);
                note(FlowCall::append, bytes, result);
            }
            const bool grows =
                pool_.files.size() == 1 || (pool_.files.size() < room_ && choices.percent(phase_.create_percent));
            const std::uint64_t victim = grows ? 0 : choices.below(pool_.files.size());
            if (PoolFault fault = grows ? create(calls, result) : remove_at(victim, calls, result)) return fault;
            ++result.pool.loops;
        }
        return {};
    }

    void grow(PoolFile& file, std::uint64_t size_bytes) noexcept {
        if (size_bytes <= file.size_bytes) return;
        pool_.bytes += size_bytes - file.size_bytes;
        file.size_bytes = size_bytes;
    }

    PoolFault loop_flow(PoolCalls<Io>& calls, RankResult& result) {
        Choices choices(rule_.key_of_phase(setting_.index));
        const bool endless = phase_.stop.rule == StopRule::seconds;
        for (std::uint64_t done = 0; endless || done < phase_.transactions; ++done) {
            open_ = false;
            for (const FlowOperation& operation : phase_.flow) {
                if (!goes_on(result)) return {};
                if (PoolFault fault = flow_operation(operation, choices, calls, result)) return fault;
            }
            ++result.pool.loops;
        }
        return {};
    }

    PoolFault flow_operation(const FlowOperation& operation, Choices& choices, PoolCalls<Io>& calls,
                             RankResult& result) {
        using enum FlowCall;
        PoolFault fault;
        std::uint64_t bytes = 0;
        if (operation.call == FlowCall::remove)
            return remove_at(choices.below(pool_.files.size()), calls, result);  // remove_at() calls note().
        switch (operation.call) {
            case create:
                fault = calls.open(pool_.next, O_CREAT | O_EXCL | O_RDWR);
                if (!fault) add({.item = pool_.next, .size_bytes = 0});
                current_ = pool_.files.size() - 1;
                open_ = true;
                break;
            case open:
                current_ = choices.below(pool_.files.size());
                fault = calls.open(pool_.files[current_].item, O_RDWR);
                open_ = true;
                break;
            case stat:
                fault = calls.status(pool_.files[open_ ? current_ : choices.below(pool_.files.size())].item);
                break;
            case fsync:
                fault = calls.synchronise();
                break;
            case close:
                fault = calls.close();
                open_ = false;
                break;
            default:
                fault = move(operation, choices, calls, bytes);
        }
        if (!fault) note(operation.call, bytes, result);
        return fault;
    }

    // Read or write a whole file, or a piece of it that is chosen for each call.
    PoolFault move(const FlowOperation& operation, Choices& choices, PoolCalls<Io>& calls, std::uint64_t& bytes) {
        PoolFile& file = pool_.files[current_];
        const bool reading = operation.call == FlowCall::read;
        const std::uint64_t first_size = rule_.size_of(file.item);
        std::uint64_t from = 0;
        bytes = operation.bytes;
        if (operation.call == FlowCall::append) {
            from = file.size_bytes;
            if (bytes == 0) bytes = first_size;
        } else if (bytes == 0) {
            bytes = reading || file.size_bytes > 0 ? file.size_bytes : first_size;
        } else if (file.size_bytes > bytes) {
            from = bytes * choices.below(file.size_bytes / bytes);
        }
        if (reading) bytes = std::min(bytes, file.size_bytes - from);
        std::uint64_t unit = reading ? phase_.read_unit_bytes : phase_.write_unit_bytes;
        if (operation.unit_bytes > 0) unit = operation.unit_bytes;
        PoolFault fault = reading ? calls.read(file.item, from, from + bytes, unit)
                                  : calls.write(file.item, from, from + bytes, unit);
        if (!reading && !fault) grow(file, from + bytes);
        return fault;
    }

    [[nodiscard]] Failure describe_call(const PoolFault& fault, const PoolCalls<Io>& calls) const {
        std::string path = setting_.path_of(directory_name());
        if (phase_.subdirectories > 0) path += "/s" + std::to_string(rule_.directory_of(calls.item()));
        path.append("/").append(calls.name());
        const std::string_view call = fault.call;
        if (call == "read" || call == "write") return describe(fault.end, std::move(path));
        return call_failure(call, std::move(path), fault.end.error);
    }

    const PhaseSetting& setting_;
    Seat seat_;
    const SmallFilesPhase& phase_;
    PoolsOfSet& set_;
    Pool& pool_;
    PoolRule rule_;
    std::vector<Descriptor> directories_;
    Buffer buffer_;
    std::uint64_t room_ = 0;      // capacity of the list of files
    std::uint64_t deadline_ = 0;  // deadline in ticks
    std::uint64_t before_ = 0;    // last reading of the clock in ticks
    Pace pace_;
    std::uint64_t current_ = 0;  // index of the open file in the list
    bool open_ = false;
};

}  // namespace

std::unique_ptr<Workload> make_small_files(const PhaseSetting& setting, const Seat& seat) {
    return std::make_unique<SmallFiles<Posix>>(setting, seat);
}

}  // namespace strakes
