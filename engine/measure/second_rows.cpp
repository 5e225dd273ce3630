// Differences from look to look.
#include "measure/second_rows.hpp"

#include <utility>

namespace strakes {

void SecondRows::look(std::size_t phase, std::uint64_t now_ns, std::uint64_t bytes, std::uint64_t operations) {
    constexpr std::uint64_t kEveryNs = 950'000'000;  // the watcher looks every half second, give or take
    const std::lock_guard lock(mutex_);
    const bool first = phase != phase_;
    if (!first && now_ns < last_ns_ + kEveryNs) return;
    Counters counters = read_counters();
    if (first) {
        rows_.clear();
    } else {
        rows_.push_back({.end_ns = now_ns,
                         .took_ns = now_ns - last_ns_,
                         .bytes = bytes > bytes_ ? bytes - bytes_ : 0,
                         .operations = operations > operations_ ? operations - operations_ : 0,
                         .delta = difference(counters_, counters)});
    }
    phase_ = phase;
    last_ns_ = now_ns;
    bytes_ = bytes;
    operations_ = operations;
    counters_ = std::move(counters);
}

std::vector<SecondRow> SecondRows::take(std::size_t phase) {
    const std::lock_guard lock(mutex_);
    if (phase != phase_) return {};
    return std::exchange(rows_, {});
}

}  // namespace strakes
