// Team: the ranks that run a plan together. They are threads of this process, each with its own descriptor table, or
// processes with one rank each.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/clock.hpp"
#include "system/bytes.hpp"
#include "team/exchange.hpp"
#include "team/threads.hpp"

namespace strakes {

class LibraryFiles;

class Processes {
  public:
    using Rank = std::uint32_t;

    Processes() = default;
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;
    virtual ~Processes() = default;

    // Run the body on the only thread that may call the other functions of this class. wait() waits for the body.
    virtual void perform(std::function<void()> body) = 0;
    virtual void wait() = 0;

    // Wait for all processes. Return true in every process if any process passed true.
    virtual bool any(bool mine) = 0;
    // Called right after a barrier. All processes leave at the same time, as far as their clocks agree.
    virtual Start start_line() = 0;
    virtual std::vector<std::string> all(std::string_view mine) = 0;
    virtual void send(Rank to, std::string_view bytes) = 0;
    virtual std::string receive(Rank from) = 0;

    // Messages inside timed sections and in the steps around them.
    [[nodiscard]] virtual Exchange& exchange() = 0;
    [[nodiscard]] virtual LibraryFiles* libraries() { return nullptr; }

    [[nodiscard]] virtual const Timeline& timeline() const = 0;
    // Whether this is the first rank of its node, and the number of the plan's ranks on the node.
    [[nodiscard]] virtual bool leads_node() const = 0;
    [[nodiscard]] virtual Rank ranks_on_node() const = 0;
    // Index of this rank among the ranks on its machine. A machine may appear as several nodes.
    [[nodiscard]] virtual Rank place_on_machine() const = 0;
};

class Team {
  public:
    using Rank = std::uint32_t;

    // All ranks are threads of this process. Exchange sees `ranks_per_node` of them as one node. `crowded`: by their
    // placement, some ranks share a processor.
    explicit Team(Rank size) : Team(size, size) {}
    Team(Rank size, Rank ranks_per_node, bool crowded = false);
    Team(Rank size, Rank mine, Processes& processes);
    ~Team() { join(); }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Run body(rank) on every rank of this process. If a thread cannot be started, run no body and return an error
    // number. Must be called only once per team.
    [[nodiscard]] int start(std::function<void(Rank)> body);
    void join();

    [[nodiscard]] Rank size() const noexcept { return size_; }
    // The ranks of this process are first() .. first() + count() - 1.
    [[nodiscard]] Rank first() const noexcept { return first_; }
    [[nodiscard]] Rank count() const noexcept { return count_; }
    // Null if all ranks are in this process.
    [[nodiscard]] Processes* processes() const noexcept { return processes_; }

    void barrier() { meeting_.arrive_and_wait(); }

    // Wait for all ranks. Return true on every rank if any rank passed true.
    [[nodiscard]] bool any(bool mine) {
        if (mine) raised_.store(true, std::memory_order_relaxed);
        meeting_.arrive_and_wait();
        return answer_;
    }

    // Called right after a barrier. Ranks leave a barrier at different times, but the start line at the same time.
    [[nodiscard]] Start start_line() { return processes_ != nullptr ? processes_->start_line() : start_->pass(); }

    [[nodiscard]] Exchange& exchange(Rank rank) {
        return processes_ != nullptr ? processes_->exchange() : exchange_->of(rank);
    }

    // Null if the ranks are threads.
    [[nodiscard]] LibraryFiles* libraries() { return processes_ != nullptr ? processes_->libraries() : nullptr; }

    [[nodiscard]] Timeline timeline() const { return processes_ != nullptr ? processes_->timeline() : Timeline(); }
    [[nodiscard]] Rank ranks_on_node() const { return processes_ != nullptr ? processes_->ranks_on_node() : count_; }
    [[nodiscard]] Rank place_on_machine(Rank rank) const {
        return processes_ != nullptr ? processes_->place_on_machine() : rank;
    }
    [[nodiscard]] bool leads_node(Rank rank) const {
        return rank == first_ && (processes_ == nullptr || processes_->leads_node());
    }

  private:
    struct Count {
        Team* team;
        void operator()() const noexcept { team->answer(); }
    };
    struct Seat {
        Team* team;
        Rank rank;
    };
    enum class Gate : std::uint8_t { closed, open, cancelled };

    static void* enter(void* seat);
    void answer() noexcept;
    [[nodiscard]] int start_threads();

    Rank size_, first_, count_;
    Processes* processes_;
    std::function<void(Rank)> body_;
    std::vector<Seat> seats_;
    std::vector<pthread_t> threads_;
    std::atomic<Gate> gate_{Gate::closed};
    std::atomic<bool> raised_{false};
    bool answer_ = false;  // Written while all ranks wait, and read before any rank continues.
    std::barrier<Count> meeting_;
    std::unique_ptr<ThreadExchange> exchange_;  // null unless the ranks are threads
    std::unique_ptr<ThreadStart> start_;        // null unless the ranks are threads
};

// One value for each rank of a process, starting with rank `first`. The first rank reads all values after a barrier.
template <class Value>
class Gathered {
  public:
    explicit Gathered(Team::Rank size) : Gathered(0, size) {}
    Gathered(Team::Rank first, Team::Rank size) : first_(first), slots_(size) {}
    [[nodiscard]] Value& of(Team::Rank rank) { return slots_[rank - first_].value; }
    [[nodiscard]] const Value& of(Team::Rank rank) const { return slots_[rank - first_].value; }
    [[nodiscard]] Team::Rank first() const noexcept { return first_; }
    [[nodiscard]] Team::Rank size() const noexcept { return static_cast<Team::Rank>(slots_.size()); }

  private:
    // On a separate cache line, because ranks write while others are timed.
    struct alignas(64) Slot {
        Value value{};
    };
    Team::Rank first_;
    std::vector<Slot> slots_;
};

// Merge the values of all processes at rank 0, in rank order, along a binomial tree. The first rank of every process
// calls it. Return true where `value` is complete.
template <class Value>
bool collect(const Team& team, Value& value) {
    Processes* processes = team.processes();
    if (processes == nullptr) return true;
    const Team::Rank mine = team.first();
    for (Team::Rank step = 1; step < team.size(); step *= 2) {
        if (mine % (2 * step) != 0) {
            Packer packer;
            packer(value);
            processes->send(mine - step, packer.take());
            return false;
        }
        if (step >= team.size() - mine) continue;
        const std::string bytes = processes->receive(mine + step);
        Value later;
        Unpacker unpacker(bytes);
        unpacker(later);
        value.merge(std::move(later));
    }
    return true;
}

}  // namespace strakes
