// Who runs a plan together: threads of this process, each with a descriptor table of its own, or one rank in each of
// several processes.
#pragma once

#include <pthread.h>

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "team/exchange.hpp"
#include "team/processes.hpp"
#include "team/thread_exchange.hpp"
#include "team/thread_start.hpp"
#include "team/timeline.hpp"

namespace strakes {

class Team {
  public:
    using Rank = std::uint32_t;

    // All ranks are threads of this process; so many of them pass for one node. `crowded`: they are put where they must
    // wait for each other.
    explicit Team(Rank size) : Team(size, size) {}
    Team(Rank size, Rank ranks_per_node, bool crowded = false);
    // This process is one of the ranks.
    Team(Rank size, Rank mine, Processes& processes);
    ~Team() { join(); }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Runs body(rank) on every rank of this process, or on none: then the error number says why. Once per team.
    [[nodiscard]] int start(std::function<void(Rank)> body);
    void join();

    [[nodiscard]] Rank size() const noexcept { return size_; }
    // The ranks of this process are first() .. first() + count() - 1.
    [[nodiscard]] Rank first() const noexcept { return first_; }
    [[nodiscard]] Rank count() const noexcept { return count_; }
    // None when all ranks are here.
    [[nodiscard]] Processes* processes() const noexcept { return processes_; }

    // For the ranks: returns when all have come.
    void barrier() { meeting_.arrive_and_wait(); }

    // A barrier that gives every rank the same answer: has any of them said true?
    [[nodiscard]] bool any(bool mine) {
        if (mine) raised_.store(true, std::memory_order_relaxed);
        meeting_.arrive_and_wait();
        return answer_;
    }

    // Right after a barrier, which ranks leave at different moments: this they leave at the same one.
    [[nodiscard]] Start start_line() { return processes_ != nullptr ? processes_->start_line() : start_->pass(); }

    // For one rank of this process: how it exchanges bytes with the others.
    [[nodiscard]] Exchange& exchange(Rank rank) {
        return processes_ != nullptr ? processes_->exchange() : exchange_->of(rank);
    }

    // Null where the ranks are threads.
    [[nodiscard]] LibraryFiles* libraries() { return processes_ != nullptr ? processes_->libraries() : nullptr; }

    [[nodiscard]] Timeline timeline() const { return processes_ != nullptr ? processes_->timeline() : Timeline(); }
    [[nodiscard]] Rank ranks_on_node() const { return processes_ != nullptr ? processes_->ranks_on_node() : count_; }
    // Of a rank of this process among those of its machine.
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
    bool answer_ = false;  // written while all ranks wait, read before any comes back
    std::barrier<Count> meeting_;
    std::unique_ptr<ThreadExchange> exchange_;  // where the ranks are threads
    std::unique_ptr<ThreadStart> start_;        // as well
};

// One value of every rank from `first` on: those of a process, for its first rank to read after a barrier.
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
    // A cache line of its own: ranks write while others are being timed.
    struct alignas(64) Slot {
        Value value{};
    };
    Team::Rank first_;
    std::vector<Slot> slots_;
};

// The values of all processes merged into one at rank 0, lower ranks first, along a binomial tree: log2 of the number
// of processes steps, and no process holds more than one value beside its own. For the first rank of every process;
// true where the whole is.
template <class Value>
bool collect(const Team& team, Value& value) {
    Processes* processes = team.processes();
    if (processes == nullptr) return true;
    const Team::Rank mine = team.first();
    for (Team::Rank step = 1; step < team.size(); step *= 2) {
        if (mine % (2 * step) != 0) {
            processes->send(mine - step, value.pack());
            return false;
        }
        if (step < team.size() - mine) value.merge(Value::unpack(processes->receive(mine + step)));
    }
    return true;
}

}  // namespace strakes
