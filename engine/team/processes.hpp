// The processes of a plan whose ranks are processes: rank r is process r. Everything here is called by one thread of
// each process, by all of them in the same order; waiting costs little processor time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "team/exchange.hpp"
#include "team/timeline.hpp"

namespace strakes {

class LibraryFiles;

// How a rank was let go into its timed section.
struct Start {
    bool begun = false;
    std::uint64_t clock_uncertainty_ns = 0;  // by how much its timeline may be wrong then
    bool crowded = false;                    // its machine has fewer processors than the plan has ranks there

    void merge(const Start& other) noexcept {
        begun |= other.begun;
        clock_uncertainty_ns = std::max(clock_uncertainty_ns, other.clock_uncertainty_ns);
        crowded |= other.crowded;
    }
};

class Processes {
  public:
    using Rank = std::uint32_t;

    Processes() = default;
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;
    virtual ~Processes() = default;

    // Runs the body on the thread that may call the rest; wait() comes back when it has ended.
    virtual void perform(std::function<void()> body) = 0;
    virtual void wait() = 0;

    // A barrier that gives every process the same answer: has any of them said true?
    virtual bool any(bool mine) = 0;
    // All leave at the same moment, as far as their clocks agree; right after a barrier.
    virtual Start start_line() = 0;
    virtual std::uint64_t least(std::uint64_t mine) = 0;
    // What each of them said, by rank.
    virtual std::vector<std::string> all(std::string_view mine) = 0;
    virtual void send(Rank to, std::string_view bytes) = 0;
    virtual std::string receive(Rank from) = 0;

    // For the rank, inside its timed section and around it.
    [[nodiscard]] virtual Exchange& exchange() = 0;
    // Files by libraries over MPI, where there is MPI.
    [[nodiscard]] virtual LibraryFiles* libraries() { return nullptr; }

    [[nodiscard]] virtual const Timeline& timeline() const = 0;
    // The first rank of its node; and how many ranks there are on it.
    [[nodiscard]] virtual bool leads_node() const = 0;
    [[nodiscard]] virtual Rank ranks_on_node() const = 0;
    // Of this one among the ranks of its machine, which may pass for several nodes.
    [[nodiscard]] virtual Rank place_on_machine() const = 0;
    // That the ranks of the plan are on.
    [[nodiscard]] virtual std::size_t nodes() const = 0;
};

}  // namespace strakes
