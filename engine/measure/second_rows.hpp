// What happened second by second while a phase ran: work of all ranks, and counters of this node.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "measure/counters.hpp"

namespace strakes {

struct SecondRow {
    std::uint64_t end_ns = 0;   // after the phase's start
    std::uint64_t took_ns = 0;  // since the row before
    std::uint64_t bytes = 0;    // in this time, as operations and the counters
    std::uint64_t operations = 0;
    CounterDelta delta;
};

// Looks are of the watching thread; the rows are taken by another one when the phase has ended.
class SecondRows {
  public:
    // Of at most so many rows: when there are more, each two become one, and rows are twice as long from then on.
    explicit SecondRows(std::size_t most_rows = kMostRows) : most_rows_(most_rows) {}

    static constexpr std::size_t kMostRows = 86'400;
    // For each of so many nodes, since all of them come together at rank 0.
    [[nodiscard]] static constexpr std::size_t most_of(std::size_t nodes) noexcept {
        constexpr std::size_t kOfAll = 60'000, kLeast = 60;
        return std::clamp(kOfAll / std::max<std::size_t>(nodes, 1), kLeast, kMostRows);
    }

    // `phase` counts from 1; `now_ns` after its start, with what all ranks had done until then. The first look at a
    // phase is where its first row begins; looks less than about a row's length after a row's end change nothing.
    void look(std::size_t phase, std::uint64_t now_ns, std::uint64_t bytes, std::uint64_t operations);
    [[nodiscard]] std::vector<SecondRow> take(std::size_t phase);

  private:
    static constexpr std::uint64_t kSecondNs = 950'000'000;  // the watcher looks every half second, give or take

    void halve();

    std::size_t most_rows_;
    std::mutex mutex_;
    std::uint64_t every_ns_ = kSecondNs;
    std::size_t phase_ = 0;
    std::uint64_t last_ns_ = 0, bytes_ = 0, operations_ = 0;
    Counters counters_;
    std::vector<SecondRow> rows_;
};

}  // namespace strakes
