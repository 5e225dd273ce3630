// What happened second by second while a phase ran: work of all ranks, and counters of this node.
#pragma once

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
    // `phase` counts from 1; `now_ns` after its start, with what all ranks had done until then. The first look at a
    // phase is where its first row begins; looks less than about a second after a row's end change nothing.
    void look(std::size_t phase, std::uint64_t now_ns, std::uint64_t bytes, std::uint64_t operations);
    [[nodiscard]] std::vector<SecondRow> take(std::size_t phase);

  private:
    std::mutex mutex_;
    std::size_t phase_ = 0;
    std::uint64_t last_ns_ = 0, bytes_ = 0, operations_ = 0;
    Counters counters_;
    std::vector<SecondRow> rows_;
};

}  // namespace strakes
