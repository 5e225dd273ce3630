// Keeps a rank below its part of a limit: what an operation costs is time, and the next one waits until it has passed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "measure/clock.hpp"
#include "plan/impact.hpp"
#include "team/halt.hpp"

namespace strakes {

// A token bucket kept as the moment at which it is even (the virtual scheduling of ITU-T I.371). It is empty at the
// start; what a slow operation leaves unused may be caught up with for a tenth of a second.
class Pace {
  public:
    Pace() = default;
    // `sharers` ranks have the limit between them. Nothing is waited for after `deadline` (ticks), nor once the halt is
    // there.
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
        std::uint64_t ticks;  // they took
    };
    // After what has ended at `now`: comes back when its cost has passed, with the clock's reading then.
    [[nodiscard]] std::uint64_t hold(std::uint64_t now, const Spent& spent) noexcept;

    // How long it has held the rank back.
    [[nodiscard]] std::uint64_t held_ns() const noexcept { return held_ns_; }

  private:
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
    double even_ns_ = 0;  // after the start
    std::uint64_t held_ns_ = 0;
    bool on_ = false;
};

// For loops with many operations under way: what a round has completed is paid for before more is begun; what is under
// way goes on meanwhile.
class RoundPace {
  public:
    RoundPace(const Pace& pace, const Clock& clock) noexcept : pace_(pace), clock_(clock), round_(clock.now()) {}

    [[nodiscard]] bool on() const noexcept { return pace_.on(); }
    [[nodiscard]] std::uint64_t held_ns() const noexcept { return pace_.held_ns(); }

    // `operations` and `bytes` are all that the rank has completed.
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
