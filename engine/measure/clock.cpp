#include "measure/clock.hpp"

#include <cmath>
#include <fstream>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace strakes {

namespace {

#if defined(__x86_64__)

// The kernel checks at boot and at run time that the counters of all cores agree, and switches away from "tsc" if they
// do not.
bool kernel_trusts_tsc() {
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string name;
    return static_cast<bool>(file >> name) && name == "tsc";
}

// EDX bit 8: the counter's rate does not follow the core frequency (Intel SDM vol. 3B, 18.17.1; AMD APM vol. 3,
// Fn8000_0007).
bool tsc_is_invariant() {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid(0x80000007U, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8U)) != 0;
}

struct Reading {
    std::uint64_t ticks;
    std::uint64_t ns;
};

// Read both clocks at nearly the same moment: take the fastest of several tries, which was interrupted least.
Reading read_both() {
    constexpr int kTries = 16;
    Reading best{};
    std::uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < kTries; ++i) {
        const std::uint64_t before = __rdtsc();
        const std::uint64_t ns = Clock::monotonic_ns();
        const std::uint64_t after = __rdtsc();
        const std::uint64_t width = elapsed(before, after);
        if (width < narrowest) {
            narrowest = width;
            best = {before + width / 2, ns};
        }
    }
    return best;
}

#endif

}  // namespace

Clock::Clock() {
#if defined(__x86_64__)
    if (!kernel_trusts_tsc() || !tsc_is_invariant()) return;
    const Reading first = read_both();
    const timespec pause{0, 20'000'000};
    nanosleep(&pause, nullptr);
    const Reading last = read_both();
    const std::uint64_t ticks = elapsed(first.ticks, last.ticks);
    const std::uint64_t ns = elapsed(first.ns, last.ns);
    if (ticks == 0 || ns == 0) return;
    const double unity = static_cast<double>(std::uint64_t{1} << kShift);
    multiplier_ =
        static_cast<std::uint64_t>(std::llround(unity * static_cast<double>(ns) / static_cast<double>(ticks)));
    tsc_ = true;
#endif
}

const Clock& Clock::system() {
    static const Clock clock;
    return clock;
}

}  // namespace strakes
