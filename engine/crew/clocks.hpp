// A common timeline for all processes. The processes of a node share a clock, and each node compares its clock with the
// clock of rank 0's node.
#pragma once

#include <cstdint>
#include <span>

#include "crew/crowd.hpp"
#include "measure/clock.hpp"
#include "team/post.hpp"

namespace strakes {

// Offset of this clock from rank 0's clock.
struct ClockStanding {
    std::int64_t offset_ns = 0;        // rank 0's clock minus this clock
    std::uint64_t uncertainty_ns = 0;  // largest error of the offset; 0: it is the same clock
    std::uint64_t at_ns = 0;           // time of the estimate by this clock

    // Returns the uncertainty at the time `now`, which grows as the clocks drift.
    [[nodiscard]] std::uint64_t uncertainty_at(std::uint64_t now) const noexcept;
};

// The interval that contains the other clock's reading minus this clock's. Each answer gives such an interval, because
// the other clock was read after the question was sent and before the answer arrived (Cristian 1989). If the delays of
// the two directions vary, the intersection of all intervals is narrower than the interval of the shortest round trip
// (Marzullo, Owicki 1983). The interval widens with time, since the clocks drift.
class ClockRelation {
  public:
    // Largest difference in rate of two clocks: crystals keep within 100e-6, and calibration adds a few 1e-6.
    static constexpr std::uint64_t kMostDriftPerMillion = 200;

    // Readings in nanoseconds.
    struct Answer {
        std::uint64_t asked;   // this clock, before the question
        std::uint64_t theirs;  // the other one
        std::uint64_t heard;   // this clock, after the answer
    };
    // Intersects the interval with an answer's. Answers must be in the order of this clock. One that contradicts
    // the earlier ones, because a clock was stepped, replaces them.
    void learn(const Answer& answer) noexcept;

    // Returns the offset of this clock from rank 0's at the last answer: the midpoint of the interval plus the offset
    // of the other clock. `theirs` holds the other clock's offset and its uncertainty at the reading.
    [[nodiscard]] ClockStanding standing(const ClockStanding& theirs) const noexcept;

    // Returns the largest drift between two clocks in this time.
    [[nodiscard]] static std::uint64_t drift_ns(std::uint64_t time_ns) noexcept;

  private:
    bool known_ = false;
    std::int64_t low_ = 0, high_ = 0;
    std::uint64_t at_ = 0;  // by this clock
};

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
