// How long calls took, second by second: of the ranks of a process, and added up over all processes.
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

// Calls in rows of equal length from the phase's start. Of a long phase rows are longer, not more.
class LatencyRows {
  public:
    explicit LatencyRows(std::size_t most_rows = kMostRows) : most_rows_(most_rows) {}

    static constexpr std::size_t kMostRows = 600;
    // Of each process, since all of them come together at rank 0.
    [[nodiscard]] static constexpr std::size_t most_of(std::size_t processes) noexcept {
        constexpr std::size_t kOfAll = 60'000, kLeast = 60;
        return std::clamp(kOfAll / std::max<std::size_t>(processes, 1), kLeast, kMostRows);
    }

    // Number of calls by kind (Latencies::of_kind) and bucket.
    using Row = std::map<std::pair<std::uint8_t, std::uint32_t>, std::uint64_t>;
    // By number; those without calls are not there.
    [[nodiscard]] const std::map<std::uint64_t, Row>& rows() const noexcept { return rows_; }
    [[nodiscard]] std::uint64_t row_ns() const noexcept { return row_ns_; }

    // What came between two moments after the phase's start belongs to the row in the middle of them.
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

// The latencies of the ranks of a process, which the watching thread looks at while they work.
class LatencyWatch {
  public:
    LatencyWatch(Team::Rank first, Team::Rank count, std::size_t processes)
        : latencies_(first, count), most_rows_(LatencyRows::most_of(processes)) {}

    // For one rank.
    [[nodiscard]] Latencies& of(Team::Rank rank) { return latencies_.of(rank); }

    // For the first rank, around the timed section: outside it the ranks change more than counts. A phase that
    // nobody looked at and that was shorter than a row has no rows.
    void begin(const Phase& phase, std::uint64_t now_ns);
    void end(std::uint64_t now_ns);
    // Of each part of the phase.
    [[nodiscard]] std::vector<LatencyRows> take();

    // For the watching thread. Looks much less than half a row apart change nothing.
    void look(std::uint64_t now_ns);

  private:
    // Of the ranks that do one part, or of all.
    struct Part {
        explicit Part(std::size_t most_rows) : rows(most_rows) {}
        Latencies seen;
        LatencyRows rows;
    };

    void add(std::uint64_t now_ns);

    Gathered<Latencies> latencies_;
    std::size_t most_rows_;
    std::mutex mutex_;
    const Phase* phase_ = nullptr;  // only within its timed section
    std::uint64_t start_ns_ = 0, seen_ns_ = 0;
    std::vector<Part> parts_;
};

}  // namespace strakes
