// Latency histograms over time, a row a second: of the ranks of a process, and summed over all processes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "system/bytes.hpp"
#include "team/team.hpp"
#include "workload/workload.hpp"

namespace strakes {

// Counts of calls in rows of equal length from the phase's start. Long phases have longer rows, not more of them.
class LatencyRows {
  public:
    explicit LatencyRows(std::size_t most_rows = kMostRows) : most_rows_(most_rows) {}

    static constexpr std::size_t kMostRows = 600;
    // Return the limit for each of `processes` processes, whose rows are all gathered at rank 0.
    [[nodiscard]] static constexpr std::size_t most_of(std::size_t processes) noexcept {
        constexpr std::size_t kOfAll = 60'000, kLeast = 60;
        return std::clamp(kOfAll / std::max<std::size_t>(processes, 1), kLeast, kMostRows);
    }

    // Number of calls by kind (Latencies::of_kind) and histogram bucket.
    using Row = std::map<std::pair<std::uint8_t, std::uint32_t>, std::uint64_t>;
    // Rows by number, except those without calls.
    [[nodiscard]] const std::map<std::uint64_t, Row>& rows() const noexcept { return rows_; }
    [[nodiscard]] std::uint64_t row_ns() const noexcept { return row_ns_; }

    // Add the calls between two times after the phase's start. They belong to the row that contains the middle.
    void add(std::uint64_t from_ns, std::uint64_t to_ns, const Latencies& before, const Latencies& after);
    void merge(LatencyRows&& other);

    void pack(Packer& packer) const;
    void unpack(Unpacker& unpacker);

  private:
    static constexpr std::uint64_t kSecondNs = 1'000'000'000;

    void lengthen();

    std::size_t most_rows_;
    std::uint64_t row_ns_ = kSecondNs;
    std::map<std::uint64_t, Row> rows_;
};

// Latencies of the ranks of a process. The watching thread reads them while the ranks work.
class LatencyWatch {
  public:
    LatencyWatch(Team::Rank first, Team::Rank count, std::size_t processes)
        : latencies_(first, count), most_rows_(LatencyRows::most_of(processes)) {}

    // Return the latencies of one rank.
    [[nodiscard]] Latencies& of(Team::Rank rank) { return latencies_.of(rank); }

    // Called by the first rank at the start and end of the timed section, outside which the ranks change more than
    // counts. A phase shorter than a row has no rows, unless it was observed before its end.
    void begin(const Phase& phase, std::uint64_t now_ns);
    void end(std::uint64_t now_ns);
    // Return and clear the rows of each part of the phase.
    [[nodiscard]] std::vector<LatencyRows> take();

    // Called by the watching thread. No effect if much less than half a row has passed since the last call.
    void look(std::uint64_t now_ns);

  private:
    // State of the ranks of one part, or of all ranks.
    struct Part {
        explicit Part(std::size_t most_rows) : rows(most_rows) {}
        Latencies seen;
        LatencyRows rows;
    };

    void add(std::uint64_t now_ns);

    Gathered<Latencies> latencies_;
    std::size_t most_rows_;
    std::mutex mutex_;
    const Phase* phase_ = nullptr;  // null outside the timed section
    std::uint64_t start_ns_ = 0, seen_ns_ = 0;
    std::vector<Part> parts_;
};

}  // namespace strakes
