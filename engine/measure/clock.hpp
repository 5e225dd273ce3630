// The engine's clock: the cheapest monotonic counter of the machine, and its conversion to nanoseconds.
#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace strakes {

// Return the ticks between two readings. The counters of two cores may differ by a few ticks, so a negative difference
// counts as 0.
constexpr std::uint64_t elapsed(std::uint64_t from, std::uint64_t to) noexcept { return to > from ? to - from : 0; }

class Clock {
  public:
    // Return the clock of this process. The first call calibrates the clock (about 20 ms), so it must come before the
    // first timed section.
    static const Clock& system();

    // Return a reading in ticks. The time-stamp counter is read without serialising. The error (some ten instructions)
    // is far below the duration of a system call, and a fence would cost more than the rest of the timing.
    std::uint64_t now() const noexcept {
#if defined(__x86_64__)
        if (tsc_) return __rdtsc();
#endif
        return monotonic_ns();
    }

    std::uint64_t to_ns(std::uint64_t ticks) const noexcept {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint64_t>((static_cast<Wide>(ticks) * multiplier_) >> kShift);
    }

    double to_seconds(std::uint64_t ticks) const noexcept { return static_cast<double>(to_ns(ticks)) * 1e-9; }

    // Spin until `ns` nanoseconds after the reading `since`. Return the last reading.
    std::uint64_t wait(std::uint64_t since, std::uint64_t ns) const noexcept {
        std::uint64_t reading = now();
        while (to_ns(elapsed(since, reading)) < ns) reading = now();
        return reading;
    }

    std::string_view name() const noexcept { return tsc_ ? "tsc" : "monotonic"; }

    static std::uint64_t monotonic_ns() noexcept {
        timespec t{};
        clock_gettime(CLOCK_MONOTONIC, &t);
        return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
    }

  private:
    Clock();

    // Fraction bits of the ns per tick: accurate to 1e-9 for ticks of 0.1-10 ns, and 2^64 ticks fit into 128 bits.
    static constexpr unsigned kShift = 32;

    bool tsc_ = false;
    std::uint64_t multiplier_ = std::uint64_t{1} << kShift;
};

struct Timeline {
    Clock clock = Clock::system();  // clock of this node
    std::int64_t offset_ns = 0;     // rank 0's clock minus this one

    [[nodiscard]] std::uint64_t at(std::uint64_t ticks) const noexcept {
        return clock.to_ns(ticks) + static_cast<std::uint64_t>(offset_ns);
    }
    [[nodiscard]] std::uint64_t now() const noexcept { return at(clock.now()); }
};

}  // namespace strakes
