// A common timeline for all processes. The processes of a node share a clock, and each node compares its clock with the
// clock of rank 0's node.
#pragma once

#include <cstdint>
#include <span>

#include "crew/clock_relation.hpp"
#include "crew/crowd.hpp"
#include "team/post.hpp"
#include "team/timeline.hpp"

namespace strakes {

class Clocks {
  public:
    using Rank = Post::Rank;

    // Collective over all processes.
    Clocks(Post& post, const Crowd& crowd);

    // Compares again, since clocks drift. Collective over `ranks`: the first processes of each of the first nodes.
    void compare(std::span<const Rank> ranks);
    // Returns whether the clocks may have drifted enough to need another comparison.
    [[nodiscard]] bool stale() const noexcept;

    [[nodiscard]] const Timeline& timeline() const noexcept { return timeline_; }
    // Returns the largest error of this process's timeline now.
    [[nodiscard]] std::uint64_t uncertainty_ns() const noexcept { return standing_.uncertainty_at(now()); }

  private:
    void answer(Rank child);
    void ask(Rank parent);
    void take(const ClockStanding& standing);
    [[nodiscard]] std::uint64_t now() const noexcept { return timeline_.clock.to_ns(timeline_.clock.now()); }

    Post& post_;
    const Crowd& crowd_;
    Timeline timeline_;
    ClockStanding standing_;        // of this node's clock
    ClockRelation to_parent_;       // used by the leader of a node
    std::uint64_t settled_ns_ = 0;  // the uncertainty after the first comparison
};

}  // namespace strakes
