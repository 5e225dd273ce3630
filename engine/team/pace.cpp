// Sleeps until the rate limit allows the next operation. Each sleep is short enough to notice a halt.
#include "team/pace.hpp"

#include <ctime>

namespace strakes {

namespace {

constexpr double kCreditNs = 100e6;
// Shorter delays are carried over to the next operation, because sleeping is no more precise than this.
constexpr double kShortestNapNs = 200e3;
constexpr double kLongestNapNs = 20e6;

}  // namespace

std::uint64_t Pace::hold(std::uint64_t now, const Spent& spent) noexcept {
    const auto since_start = [this](std::uint64_t at) {
        return static_cast<double>(clock_->to_ns(elapsed(start_, at)));
    };
    const auto took = static_cast<double>(clock_->to_ns(spent.ticks));
    const double cost = std::max({static_cast<double>(spent.bytes) * ns_per_byte_,
                                  static_cast<double>(spent.operations) * ns_per_operation_, took * stretch_});
    even_ns_ = std::max(even_ns_, since_start(now) - took - kCreditNs) + cost;
    const std::uint64_t before = now;
    const auto left = [&] { return even_ns_ - since_start(now); };
    while (left() >= kShortestNapNs && !over(now)) {
        const timespec nap{.tv_sec = 0, .tv_nsec = static_cast<long>(std::min(left(), kLongestNapNs))};
        ::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
        now = clock_->now();
    }
    held_ns_ += clock_->to_ns(elapsed(before, now));
    return now;
}

}  // namespace strakes
