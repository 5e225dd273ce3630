// Differences between successive observations.
#include "measure/second_rows.hpp"

#include <utility>

namespace strakes {

void SecondRows::look(std::size_t phase, std::uint64_t now_ns, std::uint64_t bytes, std::uint64_t operations) {
    const std::lock_guard lock(mutex_);
    const bool first = phase != phase_;
    if (!first && now_ns < last_ns_ + every_ns_) return;
    Counters counters = read_counters();
    if (first) {
        rows_.clear();
        every_ns_ = kSecondNs;
    } else {
        rows_.push_back({.end_ns = now_ns,
                         .took_ns = now_ns - last_ns_,
                         .bytes = bytes > bytes_ ? bytes - bytes_ : 0,
                         .operations = operations > operations_ ? operations - operations_ : 0,
                         .delta = difference(counters_, counters)});
    }
    if (rows_.size() > most_rows_) halve();
    phase_ = phase;
    last_ns_ = now_ns;
    bytes_ = bytes;
    operations_ = operations;
    counters_ = std::move(counters);
}

void SecondRows::halve() {
    for (std::size_t i = 0; i + 1 < rows_.size(); i += 2) {
        const SecondRow first = std::move(rows_[i]);
        SecondRow& next = rows_[i + 1];
        rows_[i / 2] = {.end_ns = next.end_ns,
                        .took_ns = first.took_ns + next.took_ns,
                        .bytes = first.bytes + next.bytes,
                        .operations = first.operations + next.operations,
                        .delta = joined(first.delta, next.delta)};
    }
    if (rows_.size() % 2 != 0) rows_[rows_.size() / 2] = std::move(rows_.back());
    rows_.resize((rows_.size() + 1) / 2);
    every_ns_ *= 2;
}

std::vector<SecondRow> SecondRows::take(std::size_t phase) {
    const std::lock_guard lock(mutex_);
    if (phase != phase_) return {};
    return std::exchange(rows_, {});
}

}  // namespace strakes
