// Pace: keeps a rank below its share of a rate limit. The limit gives every operation a duration, and the next
// operation starts only after this duration.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>

#include "measure/clock.hpp"
#include "plan/kind.hpp"
#include "team/exchange.hpp"

namespace strakes {

// A token bucket in the form of the virtual scheduling algorithm of ITU-T I.371. The bucket is empty at the start.
// After a slow operation a rank may catch up on at most 0.1 s.
class Pace {
  public:
    Pace() = default;
    // `sharers` ranks share the limit. No delay lasts beyond `deadline` (ticks) or a halt.
    Pace(const Impact& impact, std::uint32_t sharers, const Clock& clock, const std::atomic<Halt>* halt,
         std::uint64_t start, std::uint64_t deadline) noexcept
        : clock_(&clock),
          halt_(halt),
          start_(start),
          deadline_(deadline),
          ns_per_byte_(cost_ns(impact.bytes_per_s, sharers)),
          ns_per_operation_(cost_ns(impact.operations_per_s, sharers)),
          stretch_(1 / impact.share),
          on_(impact.limits()) {}

    [[nodiscard]] bool on() const noexcept { return on_; }

    struct Spent {
        std::uint64_t operations, bytes;
        std::uint64_t ticks;  // duration of the operations in ticks
    };
    // Sleep until the limit allows another operation after those that ended at `now`. Each sleep is short enough to
    // notice a halt. Return the time in ticks after the wait.
    [[nodiscard, gnu::noinline]] std::uint64_t hold(std::uint64_t now, const Spent& spent) noexcept {
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

    // Sleep likewise, and set `held_ns` to the total delay of this rank.
    [[nodiscard]] std::uint64_t hold(std::uint64_t now, const Spent& spent, std::uint64_t& held_ns) noexcept {
        now = hold(now, spent);
        held_ns = held_ns_;
        return now;
    }

    [[nodiscard]] std::uint64_t held_ns() const noexcept { return held_ns_; }

  private:
    static constexpr double kCreditNs = 100e6;
    // Shorter delays are carried over to the next operation, because sleeps are not more precise than this.
    static constexpr double kShortestNapNs = 200e3;
    static constexpr double kLongestNapNs = 20e6;

    static double cost_ns(double limit, std::uint32_t sharers) noexcept {
        return limit > 0 ? 1e9 * sharers / limit : 0;
    }
    [[nodiscard]] bool over(std::uint64_t now) const noexcept {
        return now >= deadline_ || (halt_ != nullptr && halt_->load(std::memory_order_relaxed) != Halt::none);
    }

    const Clock* clock_ = nullptr;
    const std::atomic<Halt>* halt_ = nullptr;
    std::uint64_t start_ = 0, deadline_ = 0;
    double ns_per_byte_ = 0, ns_per_operation_ = 0, stretch_ = 1;
    double even_ns_ = 0;  // earliest time of the next operation, in ns since the start
    std::uint64_t held_ns_ = 0;
    bool on_ = false;
};

// For loops with several operations in flight. Delays new operations until the limit allows the completed ones.
// Operations in flight continue meanwhile.
class RoundPace {
  public:
    RoundPace(const Pace& pace, const Clock& clock) noexcept : pace_(pace), clock_(clock), round_(clock.now()) {}

    [[nodiscard]] bool on() const noexcept { return pace_.on(); }
    [[nodiscard]] std::uint64_t held_ns() const noexcept { return pace_.held_ns(); }

    // `operations` and `bytes` are totals of the rank.
    void hold(std::uint64_t operations, std::uint64_t bytes) noexcept {
        const std::uint64_t now = clock_.now();
        round_ = pace_.hold(
            now,
            {.operations = operations - paid_operations_, .bytes = bytes - paid_bytes_, .ticks = elapsed(round_, now)});
        paid_operations_ = operations;
        paid_bytes_ = bytes;
    }

  private:
    Pace pace_;
    const Clock clock_;
    std::uint64_t round_;
    std::uint64_t paid_operations_ = 0, paid_bytes_ = 0;
};

}  // namespace strakes
