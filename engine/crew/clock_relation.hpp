// Estimates the offset of another process's clock from round trips.
#pragma once

#include <cstdint>

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

}  // namespace strakes
