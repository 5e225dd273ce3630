// The clock compared with the system's clock.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "measure/clock.hpp"

using strakes::Clock;
using strakes::elapsed;

TEST_CASE("a negative difference is 0") {
    CHECK(elapsed(10, 25) == 15);
    CHECK(elapsed(25, 10) == 0);
    CHECK(elapsed(0, UINT64_MAX) == UINT64_MAX);
}

TEST_CASE("the clock is one of the two documented ones, and the same in every call") {
    const Clock& clock = Clock::system();
    CHECK((clock.name() == "tsc" || clock.name() == "monotonic"));
    CHECK(&clock == &Clock::system());
}

TEST_CASE("a second of ticks is a second to within 0.1 percent, and days of ticks do not overflow") {
    const Clock& clock = Clock::system();
    // Read between two readings of the system's clock, so that a preemption widens the bounds instead of failing the
    // test.
    const std::uint64_t outer_start = Clock::monotonic_ns();
    const std::uint64_t start = clock.now();
    const std::uint64_t inner_start = Clock::monotonic_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const std::uint64_t inner_end = Clock::monotonic_ns();
    const std::uint64_t end = clock.now();
    const std::uint64_t outer_end = Clock::monotonic_ns();
    const double measured = static_cast<double>(clock.to_ns(elapsed(start, end)));
    CHECK(measured >= 0.999 * static_cast<double>(inner_end - inner_start));
    CHECK(measured <= 1.001 * static_cast<double>(outer_end - outer_start));
    CHECK(clock.to_seconds(elapsed(start, end)) == doctest::Approx(measured * 1e-9));

    const std::uint64_t ticks = elapsed(start, end);
    const std::uint64_t many = UINT64_MAX / ticks / 16;
    const double expected = measured * static_cast<double>(many);
    CHECK(static_cast<double>(clock.to_ns(ticks * many)) == doctest::Approx(expected).epsilon(1e-6));
}

TEST_CASE("ticks do not decrease within a thread") {
    const Clock& clock = Clock::system();
    std::uint64_t last = clock.now();
    bool backwards = false;
    for (int i = 0; i < 100000; ++i) {
        const std::uint64_t now = clock.now();
        backwards = backwards || now < last;
        last = now;
    }
    CHECK_FALSE(backwards);
}
