// Results of some ranks in one phase. Tallies of consecutive ranks are merged, and sent as bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "measure/clock.hpp"
#include "measure/counters.hpp"
#include "system/failure.hpp"
#include "system/queries.hpp"
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
    ThreadTimes processor;
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

struct Tally : PhaseDetails {
    std::vector<RankRow> rows;  // rows of consecutive ranks
    bool failed = false;        // at least one rank has failed
    Start start;                // worst start of all ranks
    std::uint64_t data_ns = 0;  // time of generating and verifying data, sum over all ranks
    Latencies latencies;
    std::vector<RankFailure> failures;  // the first kMostFailures failures
    std::vector<NodeCounters> nodes;
    std::vector<Tally> parts;  // parts of a mixed phase: the same ranks by part, without failures and nodes

    void add(const RankResult& result, const Latencies& own, const Timeline& timeline) {
        const Clock& clock = timeline.clock;
        rows.push_back({.start = timeline.at(result.start),
                        .end = timeline.at(result.end),
                        .bytes = result.bytes,
                        .operations = result.operations,
                        .errors = result.failed_operations + (result.failure ? 1 : 0),
                        .slowest = std::max(clock.to_ns(result.slowest), result.slowest_ns),
                        .open = clock.to_ns(result.open),
                        .close = clock.to_ns(result.close),
                        .processor = result.processor});
        PhaseDetails::add(result);
        data_ns += clock.to_ns(result.data);
        latencies.merge(own);
        failed |= result.failure.has_value();
    }
    void add_failure(std::uint32_t rank, Failure failure) {
        if (failures.size() < kMostFailures)
            failures.push_back({.rank = rank, .host = host_name(), .failure = std::move(failure)});
    }
    // Add the ranks that follow those already included.
    void merge(Tally&& later) {
        rows.insert(rows.end(), later.rows.begin(), later.rows.end());
        failed |= later.failed;
        start.merge(later.start);
        PhaseDetails::add(later);
        data_ns += later.data_ns;
        latencies.merge(later.latencies);
        for (RankFailure& failure : later.failures)
            if (failures.size() < kMostFailures) failures.push_back(std::move(failure));
        std::ranges::move(later.nodes, std::back_inserter(nodes));
        if (parts.size() < later.parts.size()) parts.resize(later.parts.size());
        for (std::size_t part = 0; part < later.parts.size(); ++part) parts[part].merge(std::move(later.parts[part]));
    }

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        PhaseDetails::members(archive, self);
        archive(self.rows, self.failed, self.start, self.data_ns, self.latencies, self.failures, self.nodes,
                self.parts);
    }

    static constexpr std::size_t kMostFailures = 32;  // Maximum number of failures kept. Reports contain fewer.
};

}  // namespace strakes
