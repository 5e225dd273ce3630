// Results of some ranks in one phase. Tallies of consecutive ranks are merged, and sent as bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/clock.hpp"
#include "measure/counters.hpp"
#include "system/failure.hpp"
#include "team/team.hpp"
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

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.rank, self.host, self.failure);
    }
};

struct NodeCounters {
    std::string host;
    std::uint32_t first_rank = 0;
    CounterDelta delta;

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.host, self.first_rank, self.delta);
    }
};

// Work done up to a moment.
struct Work {
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;
};

struct Tally {
    std::vector<RankRow> rows;  // of consecutive ranks
    bool failed = false;        // at least one of them
    Start start;                // the worst of all ranks
    Work until_first;           // done when the first of all ranks finished
    std::uint64_t verified_bytes = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t data_ns = 0;      // spent on generating and verifying data, sum of all ranks
    std::uint64_t held_ns = 0;      // held back by the impact limits, sum of all ranks
    std::uint32_t queue_depth = 0;  // maximum of all ranks
    bool out_of_time = false;
    bool direct = true;
    CacheState cache;
    PoolCount pool;
    Listed listed;
    Trained trained;
    Hints hints;  // from rank 0, which has the merged tally, so they are not packed
    Latencies latencies;
    std::vector<RankFailure> failures;  // at most kMostFailures
    std::vector<NodeCounters> nodes;
    std::vector<Tally> parts;  // of a mixed phase: the same ranks by part, without failures and nodes

    // Add one rank of this process.
    void add(const RankResult& result, const Latencies& latencies, const Timeline& timeline);
    void add_failure(std::uint32_t rank, Failure failure);
    // Add the ranks that follow those already included.
    void merge(Tally&& later);

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.rows, self.failed, self.start, self.until_first, self.verified_bytes, self.read_bytes,
                self.data_ns, self.held_ns, self.queue_depth, self.out_of_time, self.direct, self.cache, self.pool,
                self.listed, self.trained, self.latencies, self.failures, self.nodes, self.parts);
    }

    static constexpr std::size_t kMostFailures = 32;  // more than are ever reported
};

// Work of a rank at one time, observed while it ran.
struct Glimpse {
    std::uint64_t at = 0;  // on the timeline; 0 if not observed
    Work work;
};

// Return the work of a rank until `moment`, interpolated linearly from its start to the glimpse and from there to its
// end.
Work work_until(std::uint64_t moment, const RankRow& row, const Glimpse& glimpse) noexcept;

}  // namespace strakes
