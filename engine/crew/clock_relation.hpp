// Where another clock stands against this one, from questions and answers.
#pragma once

#include <cstdint>

namespace strakes {

// How this clock stands against rank 0's.
struct ClockStanding {
    std::int64_t offset_ns = 0;        // rank 0's less this one
    std::uint64_t uncertainty_ns = 0;  // by how much that may be wrong; 0: it is the same clock
    std::uint64_t at_ns = 0;           // when this clock showed that

    // Later; two clocks never go at the same rate.
    [[nodiscard]] std::uint64_t uncertainty_at(std::uint64_t now) const noexcept;
};

// The interval that holds the other clock's reading less this one's. Each answer gives one: the other clock was read
// after the question was sent and before the answer was there (Cristian 1989); what all of them have in common is
// narrower than the one with the shortest way, as soon as ways differ there and back (Marzullo, Owicki 1983). Between
// comparisons it widens, since no two clocks go at the same rate.
class ClockRelation {
  public:
    // By how much two clocks may differ in rate: crystals keep within 100e-6, and calibration adds some millionths.
    static constexpr std::uint64_t kMostDriftPerMillion = 200;

    // Readings in nanoseconds.
    struct Answer {
        std::uint64_t asked;   // this clock, before the question
        std::uint64_t theirs;  // the other one
        std::uint64_t heard;   // this clock, after the answer
    };
    // Answers come in the order of this clock. One that contradicts those before it (a clock was stepped) counts alone.
    void learn(const Answer& answer) noexcept;

    // This clock against rank 0's, when the last answer came: the middle of the interval, on top of how the other
    // clock stands (its uncertainty when it was read).
    [[nodiscard]] ClockStanding standing(const ClockStanding& theirs) const noexcept;

    // How far two clocks may have come apart in such a time.
    [[nodiscard]] static std::uint64_t drift_ns(std::uint64_t time_ns) noexcept;

  private:
    bool known_ = false;
    std::int64_t low_ = 0, high_ = 0;
    std::uint64_t at_ = 0;  // by this clock
};

}  // namespace strakes
