// Sums of tallies, and their serialisation.
#include "workload/tally.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "system/bytes.hpp"
#include "system/host.hpp"

namespace strakes {

namespace {

void put(Packer& packer, const Histogram& histogram) {
    const auto buckets = histogram.buckets();
    packer.put(std::uint64_t{buckets.size()});
    for (const auto& [bucket, count] : buckets) {
        packer.put(bucket);
        packer.put(count);
    }
}

void get(Unpacker& unpacker, Histogram& histogram) {
    for (auto left = unpacker.get<std::uint64_t>(); left > 0 && !unpacker.at_end(); --left) {
        const auto bucket = unpacker.get<std::uint32_t>();
        histogram.add(bucket, unpacker.get<std::uint64_t>());
    }
}

void put(Packer& packer, const CacheState& cache) {
    packer.put_text(cache.method);
    packer.put(cache.file_bytes);
    packer.put(cache.resident_before_bytes);
    packer.put(cache.resident_after_bytes);
    packer.put(cache.error_bytes);
}

void get(Unpacker& unpacker, CacheState& cache) {
    cache.method = unpacker.get_text();
    cache.file_bytes = unpacker.get<std::uint64_t>();
    cache.resident_before_bytes = unpacker.get<std::uint64_t>();
    cache.resident_after_bytes = unpacker.get<std::uint64_t>();
    cache.error_bytes = unpacker.get<std::uint64_t>();
}

void put(Packer& packer, const CounterDelta& delta) {
    packer.put(delta.cpu);
    packer.put(delta.memory_available_bytes);
    packer.put(delta.page_cache_before_bytes);
    packer.put(delta.page_cache_after_bytes);
    packer.put(delta.network);
    packer.put(std::uint64_t{delta.devices.size()});
    for (const auto& [name, state] : delta.devices) {
        packer.put_text(name);
        packer.put(state);
    }
}

void get(Unpacker& unpacker, CounterDelta& delta) {
    delta.cpu = unpacker.get<CpuTimes>();
    delta.memory_available_bytes = unpacker.get<std::uint64_t>();
    delta.page_cache_before_bytes = unpacker.get<std::uint64_t>();
    delta.page_cache_after_bytes = unpacker.get<std::uint64_t>();
    delta.network = unpacker.get<NetworkBytes>();
    for (auto left = unpacker.get<std::uint64_t>(); left > 0 && !unpacker.at_end(); --left) {
        std::string name(unpacker.get_text());
        delta.devices.emplace(std::move(name), unpacker.get<DeviceState>());
    }
}

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
    latency_rows.merge(std::move(later.latency_rows));
    for (RankFailure& failure : later.failures)
        if (failures.size() < kMostFailures) failures.push_back(std::move(failure));
    std::ranges::move(later.nodes, std::back_inserter(nodes));
    if (parts.size() < later.parts.size()) parts.resize(later.parts.size());
    for (std::size_t part = 0; part < later.parts.size(); ++part) parts[part].merge(std::move(later.parts[part]));
}

std::string Tally::pack() const {
    Packer packer;
    packer.put(std::uint64_t{rows.size()});
    for (const RankRow& row : rows) packer.put(row);
    packer.put(failed);
    packer.put(start);
    packer.put(until_first);
    packer.put(verified_bytes);
    packer.put(read_bytes);
    packer.put(data_ns);
    packer.put(held_ns);
    packer.put(queue_depth);
    packer.put(out_of_time);
    packer.put(direct);
    put(packer, cache);
    packer.put(pool);
    packer.put(listed);
    packer.put(trained);
    put(packer, latencies.calls);
    for (const auto* some : {&latencies.reads, &latencies.waits}) {
        packer.put(*some != nullptr);
        if (*some) put(packer, **some);
    }
    packer.put(std::uint64_t{latencies.of_flow.size()});
    for (const Histogram& one : latencies.of_flow) put(packer, one);
    latency_rows.pack(packer);
    packer.put(std::uint64_t{failures.size()});
    for (const RankFailure& failure : failures) {
        packer.put(failure.rank);
        packer.put_text(failure.host);
        packer.put_text(strakes::pack(failure.failure));
    }
    packer.put(std::uint64_t{nodes.size()});
    for (const NodeCounters& node : nodes) {
        packer.put_text(node.host);
        packer.put(node.first_rank);
        put(packer, node.delta);
        packer.put(std::uint64_t{node.seconds.size()});
        for (const SecondRow& row : node.seconds) {
            packer.put(row.end_ns);
            packer.put(row.took_ns);
            put(packer, row.delta);
        }
    }
    packer.put(std::uint64_t{parts.size()});
    for (const Tally& part : parts) packer.put_text(part.pack());
    return packer.take();
}

Tally Tally::unpack(std::string_view bytes) {
    Unpacker unpacker(bytes);
    Tally tally;
    for (auto left = unpacker.get<std::uint64_t>(); left > 0 && !unpacker.at_end(); --left)
        tally.rows.push_back(unpacker.get<RankRow>());
    tally.failed = unpacker.get<bool>();
    tally.start = unpacker.get<Start>();
    tally.until_first = unpacker.get<Work>();
    tally.verified_bytes = unpacker.get<std::uint64_t>();
    tally.read_bytes = unpacker.get<std::uint64_t>();
    tally.data_ns = unpacker.get<std::uint64_t>();
    tally.held_ns = unpacker.get<std::uint64_t>();
    tally.queue_depth = unpacker.get<std::uint32_t>();
    tally.out_of_time = unpacker.get<bool>();
    tally.direct = unpacker.get<bool>();
    get(unpacker, tally.cache);
    tally.pool = unpacker.get<PoolCount>();
    tally.listed = unpacker.get<Listed>();
    tally.trained = unpacker.get<Trained>();
    get(unpacker, tally.latencies.calls);
    for (auto* some : {&tally.latencies.reads, &tally.latencies.waits}) {
        if (!unpacker.get<bool>()) continue;
        *some = std::make_unique<Histogram>();
        get(unpacker, **some);
    }
    for (auto left = unpacker.get<std::uint64_t>(); left > 0 && !unpacker.at_end(); --left)
        get(unpacker, tally.latencies.of_flow.emplace_back());
    tally.latency_rows.unpack(unpacker);
    for (auto left = unpacker.get<std::uint64_t>(); left > 0 && !unpacker.at_end(); --left) {
        RankFailure failure;
        failure.rank = unpacker.get<std::uint32_t>();
        failure.host = unpacker.get_text();
        failure.failure = unpack_failure(unpacker.get_text());
        tally.failures.push_back(std::move(failure));
    }
    for (auto left = unpacker.get<std::uint64_t>(); left > 0 && !unpacker.at_end(); --left) {
        NodeCounters node;
        node.host = unpacker.get_text();
        node.first_rank = unpacker.get<std::uint32_t>();
        get(unpacker, node.delta);
        for (auto rows = unpacker.get<std::uint64_t>(); rows > 0 && !unpacker.at_end(); --rows) {
            SecondRow& row = node.seconds.emplace_back();
            row.end_ns = unpacker.get<std::uint64_t>();
            row.took_ns = unpacker.get<std::uint64_t>();
            get(unpacker, row.delta);
        }
        tally.nodes.push_back(std::move(node));
    }
    for (auto left = unpacker.get<std::uint64_t>(); left > 0 && !unpacker.at_end(); --left)
        tally.parts.push_back(unpack(unpacker.get_text()));
    return tally;
}

std::string pack(const Failure& failure) {
    Packer packer;
    for (const std::string* text :
         {&failure.what, &failure.path, &failure.operation, &failure.why, &failure.error_name, &failure.remedy})
        packer.put_text(*text);
    packer.put(failure.offset_bytes);
    return packer.take();
}

Failure unpack_failure(std::string_view bytes) {
    Unpacker unpacker(bytes);
    Failure failure;
    for (std::string* text :
         {&failure.what, &failure.path, &failure.operation, &failure.why, &failure.error_name, &failure.remedy})
        *text = unpacker.get_text();
    failure.offset_bytes = unpacker.get<std::optional<std::uint64_t>>();
    return failure;
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
