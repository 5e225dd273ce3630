// Processes: the processes of a plan with one rank each. Rank r is process r. All of them make the same calls in the
// same order, each from one thread. Waiting uses little processor time.
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

// How a rank entered its timed section.
struct Start {
    bool begun = false;
    std::uint64_t clock_uncertainty_ns = 0;  // uncertainty of its timeline at that moment
    bool crowded = false;                    // ranks on its machine share processors

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

    // Run the body on the thread that may make the other calls. wait() returns when the body has ended.
    virtual void perform(std::function<void()> body) = 0;
    virtual void wait() = 0;

    // A barrier that returns true in every process if any of them passed true.
    virtual bool any(bool mine) = 0;
    // Called right after a barrier. All processes leave at the same time, as far as their clocks agree.
    virtual Start start_line() = 0;
    virtual std::uint64_t least(std::uint64_t mine) = 0;
    // Return the texts of all processes, by rank.
    virtual std::vector<std::string> all(std::string_view mine) = 0;
    virtual void send(Rank to, std::string_view bytes) = 0;
    virtual std::string receive(Rank from) = 0;

    // Messages inside timed sections and in the steps around them.
    [[nodiscard]] virtual Exchange& exchange() = 0;
    // MPI-based file libraries, or null.
    [[nodiscard]] virtual LibraryFiles* libraries() { return nullptr; }

    [[nodiscard]] virtual const Timeline& timeline() const = 0;
    // Whether this is the first rank of its node, and the number of the plan's ranks on the node.
    [[nodiscard]] virtual bool leads_node() const = 0;
    [[nodiscard]] virtual Rank ranks_on_node() const = 0;
    // Index of this rank among the ranks on its machine. A machine may appear as several nodes.
    [[nodiscard]] virtual Rank place_on_machine() const = 0;
    // Number of nodes that run ranks of the plan.
    [[nodiscard]] virtual std::size_t nodes() const = 0;
};

}  // namespace strakes
