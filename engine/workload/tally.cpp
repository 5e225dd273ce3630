// Sums of tallies, and their serialisation.
#include "workload/tally.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "system/queries.hpp"

namespace strakes {

namespace {

// Interpolate linearly between the amounts `before` at time `from` and `after` at time `to`.
std::uint64_t between(std::uint64_t moment, std::uint64_t from, std::uint64_t before, std::uint64_t to,
                      std::uint64_t after) noexcept {
    if (to <= from || after <= before) return after;
    const double share = static_cast<double>(moment - from) / static_cast<double>(to - from);
    return before + static_cast<std::uint64_t>(share * static_cast<double>(after - before));
}

}  // namespace

void Tally::add(const RankResult& result, const Latencies& own, const Timeline& timeline) {
    const Clock& clock = timeline.clock;
    rows.push_back({.start = timeline.at(result.start),
                    .end = timeline.at(result.end),
                    .bytes = result.bytes,
                    .operations = result.operations,
                    .errors = result.failed_operations + (result.failure ? 1 : 0),
                    .slowest = std::max(clock.to_ns(result.slowest), result.slowest_ns),
                    .open = clock.to_ns(result.open),
                    .close = clock.to_ns(result.close)});
    verified_bytes += result.verified_bytes;
    read_bytes += result.read_bytes;
    data_ns += clock.to_ns(result.data);
    held_ns += result.held_ns;
    queue_depth = std::max(queue_depth, result.queue_depth);
    out_of_time |= result.out_of_time;
    direct &= result.direct;
    cache.add(result.cache);
    pool.add(result.pool);
    listed.add(result.listed);
    trained.add(result.trained);
    if (hints.empty()) hints = result.hints;
    latencies.merge(own);
    failed |= result.failure.has_value();
}

void Tally::add_failure(std::uint32_t rank, Failure failure) {
    if (failures.size() < kMostFailures)
        failures.push_back({.rank = rank, .host = host_name(), .failure = std::move(failure)});
}

void Tally::merge(Tally&& later) {
    rows.insert(rows.end(), later.rows.begin(), later.rows.end());
    failed |= later.failed;
    start.merge(later.start);
    until_first.bytes += later.until_first.bytes;
    until_first.operations += later.until_first.operations;
    verified_bytes += later.verified_bytes;
    read_bytes += later.read_bytes;
    data_ns += later.data_ns;
    held_ns += later.held_ns;
    queue_depth = std::max(queue_depth, later.queue_depth);
    out_of_time |= later.out_of_time;
    direct &= later.direct;
    cache.add(later.cache);
    pool.add(later.pool);
    listed.add(later.listed);
    trained.add(later.trained);
    latencies.merge(later.latencies);
    for (RankFailure& failure : later.failures)
        if (failures.size() < kMostFailures) failures.push_back(std::move(failure));
    std::ranges::move(later.nodes, std::back_inserter(nodes));
    if (parts.size() < later.parts.size()) parts.resize(later.parts.size());
    for (std::size_t part = 0; part < later.parts.size(); ++part) parts[part].merge(std::move(later.parts[part]));
}

Work work_until(std::uint64_t moment, const RankRow& row, const Glimpse& glimpse) noexcept {
    const Work all{row.bytes, row.operations};
    if (moment >= row.end) return all;
    if (moment <= row.start) return {};
    const bool seen = glimpse.at > row.start && glimpse.at < row.end;
    const bool later = seen && moment > glimpse.at;
    const std::uint64_t from = later ? glimpse.at : row.start;
    const std::uint64_t to = seen && !later ? glimpse.at : row.end;
    const Work before = later ? glimpse.work : Work{};
    const Work after = seen && !later ? glimpse.work : all;
    return {between(moment, from, before.bytes, to, after.bytes),
            between(moment, from, before.operations, to, after.operations)};
}

}  // namespace strakes
