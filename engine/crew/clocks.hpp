// One time for all processes: those of a node share a clock, and each node's is compared with that of rank 0's node.
#pragma once

#include <cstdint>

#include "crew/crowd.hpp"
#include "team/post.hpp"
#include "team/timeline.hpp"

namespace strakes {

class Clocks {
  public:
    // By all processes together, as the rest.
    Clocks(Post& post, const Crowd& crowd);

    // Compares again, since clocks drift: their rates are known to some millionths.
    void compare();

    [[nodiscard]] const Timeline& timeline() const noexcept { return timeline_; }
    // By how much this process may be wrong.
    [[nodiscard]] std::uint64_t uncertainty_ns() const noexcept { return uncertainty_ns_; }

  private:
    void compare_leaders();
    void answer(Post::Rank child);
    void ask(Post::Rank parent);

    Post& post_;
    const Crowd& crowd_;
    Timeline timeline_;
    std::uint64_t uncertainty_ns_ = 0;
};

}  // namespace strakes
