// Intersects offset intervals.
#include "crew/clock_relation.hpp"

#include <algorithm>

#include "measure/clock.hpp"

namespace strakes {

// Rounded up.
std::uint64_t ClockRelation::drift_ns(std::uint64_t time_ns) noexcept {
    constexpr std::uint64_t kMillion = 1'000'000;
    return time_ns / kMillion * kMostDriftPerMillion +
           (time_ns % kMillion * kMostDriftPerMillion + kMillion - 1) / kMillion;
}

void ClockRelation::learn(const Answer& answer) noexcept {
    // The clocks may drift between the reading and the arrival of the answer.
    const auto meanwhile = static_cast<std::int64_t>(drift_ns(elapsed(answer.asked, answer.heard)));
    const auto low = static_cast<std::int64_t>(answer.theirs - answer.heard) - meanwhile;
    const auto high = static_cast<std::int64_t>(answer.theirs - answer.asked) + meanwhile;
    const auto since = static_cast<std::int64_t>(drift_ns(elapsed(at_, answer.heard)));
    const std::int64_t both_low = std::max(low, low_ - since);
    const std::int64_t both_high = std::min(high, high_ + since);
    const bool agree = known_ && both_low <= both_high;
    low_ = agree ? both_low : low;
    high_ = agree ? both_high : high;
    at_ = answer.heard;
    known_ = true;
}

ClockStanding ClockRelation::standing(const ClockStanding& theirs) const noexcept {
    // The midpoint is rounded down, so its uncertainty is rounded up.
    return {.offset_ns = low_ + (high_ - low_) / 2 + theirs.offset_ns,
            .uncertainty_ns = static_cast<std::uint64_t>((high_ - low_ + 1) / 2) + theirs.uncertainty_ns,
            .at_ns = at_};
}

std::uint64_t ClockStanding::uncertainty_at(std::uint64_t now) const noexcept {
    return uncertainty_ns == 0 ? 0 : uncertainty_ns + ClockRelation::drift_ns(elapsed(at_ns, now));
}

}  // namespace strakes
