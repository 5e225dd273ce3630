// Time series of a phase, a row a second: work of all ranks, and counters of this node.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "measure/counters.hpp"

namespace strakes {

struct SecondRow {
    std::uint64_t end_ns = 0;   // since the start of the phase
    std::uint64_t took_ns = 0;  // since the previous row
    std::uint64_t bytes = 0;    // in this row only, like operations and delta
    std::uint64_t operations = 0;
    CounterDelta delta;
};

// The watching thread calls look(). Another thread calls take() after the phase.
class SecondRows {
  public:
    // Keep at most `most_rows` rows. If there are more, pairs of rows are merged, and later rows cover twice the time.
    explicit SecondRows(std::size_t most_rows = kMostRows) : most_rows_(most_rows) {}

    static constexpr std::size_t kMostRows = 86'400;
    // Return the limit for each of `nodes` nodes, whose rows are all gathered at rank 0.
    [[nodiscard]] static constexpr std::size_t most_of(std::size_t nodes) noexcept {
        constexpr std::size_t kOfAll = 60'000, kLeast = 60;
        return std::clamp(kOfAll / std::max<std::size_t>(nodes, 1), kLeast, kMostRows);
    }

    // Add a row if about a row's length has passed since the last one. `phase` counts from 1, `now_ns` from its start;
    // `bytes` and `operations` are the totals of all ranks at that time. The first call of a phase discards earlier
    // rows and starts the first one.
    void look(std::size_t phase, std::uint64_t now_ns, std::uint64_t bytes, std::uint64_t operations);
    [[nodiscard]] std::vector<SecondRow> take(std::size_t phase);

  private:
    static constexpr std::uint64_t kSecondNs = 950'000'000;  // the watcher looks about every half second

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
