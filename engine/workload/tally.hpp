// What some of the ranks did in one phase; tallies of neighbouring ranks merge into one, and travel as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/counters.hpp"
#include "measure/second_rows.hpp"
#include "system/failure.hpp"
#include "team/team.hpp"
#include "team/timeline.hpp"
#include "workload/latency_rows.hpp"
#include "workload/workload.hpp"

namespace strakes {

// Times in nanoseconds; start and end on the timeline of all ranks.
struct RankRow {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;
    std::uint64_t errors = 0;
    std::uint64_t slowest = 0;
    std::uint64_t open = 0;
    std::uint64_t close = 0;
};

struct RankFailure {
    std::uint32_t rank = 0;
    std::string host;
    Failure failure;
};

struct NodeCounters {
    std::string host;
    std::uint32_t first_rank = 0;
    CounterDelta delta;
    std::vector<SecondRow> seconds;  // of nodes other than rank 0's, without work
};

// Work done up to a moment.
struct Work {
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;
};

struct Tally {
    std::vector<RankRow> rows;  // of consecutive ranks
    bool failed = false;        // one of them
    Start start;                // the worst of any rank
    Work until_first;           // until the first of all ranks finished
    std::uint64_t verified_bytes = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t data_ns = 0;      // spent on data, all ranks together
    std::uint64_t held_ns = 0;      // back, as well
    std::uint32_t queue_depth = 0;  // the most of any rank
    bool out_of_time = false;
    bool direct = true;
    CacheState cache;
    PoolCount pool;
    Listed listed;
    Trained trained;
    Hints hints;  // of rank 0, where the whole comes together: they do not travel
    Latencies latencies;
    LatencyRows latency_rows;
    std::vector<RankFailure> failures;  // the first of them
    std::vector<NodeCounters> nodes;
    std::vector<Tally> parts;  // of a mixed phase: its ranks once more, without failures and nodes

    // One rank more, of this process.
    void add(const RankResult& result, const Latencies& latencies, const Timeline& timeline);
    void add_failure(std::uint32_t rank, Failure failure);
    // The ranks after those that are in already.
    void merge(Tally&& later);

    [[nodiscard]] std::string pack() const;
    [[nodiscard]] static Tally unpack(std::string_view bytes);

    static constexpr std::size_t kMostFailures = 32;  // more than are ever reported
};

// A failure as it travels.
std::string pack(const Failure& failure);
Failure unpack_failure(std::string_view bytes);

// What a rank had done at a moment, taken while it worked.
struct Glimpse {
    std::uint64_t at = 0;  // on the timeline; 0 for none
    Work work;
};

// What a rank had done at `moment`: at an even pace from its start to the glimpse, and from there to its end.
Work work_until(std::uint64_t moment, const RankRow& row, const Glimpse& glimpse) noexcept;

}  // namespace strakes
