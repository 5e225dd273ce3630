// Sums, rates and rows of a phase.
#include "protocol/sample.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "system/host.hpp"

namespace strakes {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kShortest = 2;  // seconds of a phase that has a timeline

struct Totals {
    std::uint64_t start = UINT64_MAX;
    std::uint64_t end = 0;
    std::uint64_t bytes = 0;
    std::uint64_t operations = 0;
    std::uint64_t errors = 0;
};

Totals totals_of(const std::vector<RankRow>& rows) {
    Totals totals;
    for (const RankRow& row : rows) {
        totals.start = std::min(totals.start, row.start);
        totals.end = std::max(totals.end, row.end);
        totals.bytes += row.bytes;
        totals.operations += row.operations;
        totals.errors += row.errors;
    }
    return totals;
}

double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

double rate(std::uint64_t amount, double seconds) { return seconds > 0 ? static_cast<double>(amount) / seconds : 0; }

std::string_view stopped_by(const PhaseOutcome& outcome) {
    if (!outcome.tally.failures.empty()) return "error";
    if (outcome.cancelled) return "cancel";
    return outcome.tally.out_of_time ? "seconds" : "amount";
}

Json rows_of(const std::vector<RankRow>& ranks, std::uint64_t origin) {
    Json rows = Json::array();
    for (const RankRow& row : ranks)
        rows.push_back({rows.size(), seconds(elapsed(origin, row.start)), seconds(elapsed(origin, row.end)), row.bytes,
                        row.operations, row.errors, seconds(row.slowest), seconds(row.open), seconds(row.close)});
    return rows;
}

Json histogram_of(const Histogram& histogram) {
    return {{"unit", "ns"}, {"sub_bits", Histogram::kSubBits}, {"buckets", histogram.buckets()}};
}

// What the histogram of all calls is called.
std::string_view call_of(const Phase& phase) {
    const auto* transfer = std::get_if<TransferPhase>(&phase);
    if (transfer == nullptr) return phase_operation(phase);
    return transfer->operation == TransferOperation::read ? "read" : "write";
}

Json histograms_of_flow(const std::vector<Histogram>& of_flow) {
    Json histograms = Json::object();
    for (const auto& [name, call] : kFlowCalls) {
        const auto place = static_cast<std::size_t>(call);
        if (place < of_flow.size() && of_flow[place].count() > 0)
            histograms[std::string(name)] = histogram_of(of_flow[place]);
    }
    return histograms;
}

Json histograms_of(const PhaseOutcome& outcome) {
    const Latencies& all = outcome.tally.latencies;
    if (std::holds_alternative<SmallFilesPhase>(outcome.phase)) return histograms_of_flow(all.of_flow);
    Json histograms = Json::object();
    const bool probes = std::holds_alternative<ProbePhase>(outcome.phase);
    if (all.waits) histograms[probes ? "lag" : "gather"] = histogram_of(*all.waits);
    if (all.reads) histograms["read"] = histogram_of(*all.reads);
    histograms[std::string(call_of(outcome.phase))] = histogram_of(all.calls);
    return histograms;
}

Json cache_of(const CacheState& cache) {
    return {{"method", cache.method},
            {"file_bytes", cache.file_bytes},
            {"resident_before_bytes", cache.resident_before_bytes},
            {"resident_after_bytes", cache.resident_after_bytes}};
}

Json timeline_of(const std::vector<SecondRow>& seconds_of) {
    Json rows = Json::array();
    for (const SecondRow& row : seconds_of) {
        const Json counters = to_json(row.delta);
        rows.push_back({seconds(row.end_ns), seconds(row.took_ns), row.bytes, row.operations, row.delta.cpu.user_s,
                        row.delta.cpu.system_s, row.delta.cpu.iowait_s, row.delta.cpu.idle_s,
                        row.delta.memory_available_bytes, row.delta.page_cache_after_bytes, row.delta.network.receive,
                        row.delta.network.send, counters.at("devices")});
    }
    return {{"host", host_name()},
            {"columns",
             {"t_s", "took_s", "bytes", "operations", "cpu_user_s", "cpu_system_s", "cpu_iowait_s", "cpu_idle_s",
              "memory_available_bytes", "page_cache_bytes", "network_receive_bytes", "network_send_bytes", "devices"}},
            {"rows", std::move(rows)}};
}

std::uint64_t transfer_bytes_of(const TransferPhase* transfer, const StagePhase* stage) {
    if (transfer != nullptr) return transfer->transfer_bytes;
    return stage != nullptr ? stage->transfer_bytes : 0;
}

// Only ranks that read have operations.
Json staged_of(const Tally& tally) {
    const auto readers = std::ranges::count_if(tally.rows, [](const RankRow& row) { return row.operations > 0; });
    return {{"readers", readers}, {"read_bytes", tally.read_bytes}};
}

Json nodes_of(const std::vector<NodeCounters>& nodes) {
    Json list = Json::array();
    for (const NodeCounters& node : nodes) list.push_back({{"host", node.host}, {"counters", to_json(node.delta)}});
    return list;
}

}  // namespace

double unix_seconds(const Timeline& timeline, std::uint64_t moment) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    return now.count() - seconds(elapsed(moment, timeline.now()));
}

Json sample_of(const PhaseOutcome& outcome) {
    const Tally& tally = outcome.tally;
    const Totals totals = totals_of(tally.rows);
    const double took = seconds(elapsed(totals.start, totals.end));
    const auto* transfer = std::get_if<TransferPhase>(&outcome.phase);
    const auto* stage = std::get_if<StagePhase>(&outcome.phase);
    Json message;
    message["phase"] = outcome.index;
    message["name"] = phase_name(outcome.phase);
    message["kind"] = phase_kind(outcome.phase);
    message["operation"] = phase_operation(outcome.phase);
    message["host"] = host_name();
    message["origin_unix_s"] = unix_seconds(outcome.timeline, totals.start);
    message["stopped_by"] = stopped_by(outcome);
    message["bytes"] = totals.bytes;
    message["operations"] = totals.operations;
    message["errors"] = totals.errors;
    message["elapsed_s"] = took;
    message["bytes_per_s"] = rate(totals.bytes, took);
    message["operations_per_s"] = rate(totals.operations, took);
    message["until_first"] = {{"elapsed_s", seconds(elapsed(totals.start, outcome.first.at))},
                              {"bytes", outcome.first.work.bytes},
                              {"operations", outcome.first.work.operations}};
    message["columns"] = {"rank",   "start_s",   "end_s",  "bytes",  "operations",
                          "errors", "slowest_s", "open_s", "close_s"};
    message["ranks"] = rows_of(tally.rows, totals.start);
    message["histograms"] = histograms_of(outcome);
    message["effective"] = {{"backend", phase_backend(outcome.phase)},
                            {"queue_depth", tally.queue_depth},
                            {"direct", transfer != nullptr && tally.direct},
                            {"transfer_bytes", transfer_bytes_of(transfer, stage)},
                            {"verified_bytes", tally.verified_bytes}};
    if (transfer != nullptr || stage != nullptr) message["cache"] = cache_of(tally.cache);
    if (stage != nullptr) message["staged"] = staged_of(tally);
    if (const auto* small = std::get_if<SmallFilesPhase>(&outcome.phase)) {
        message["population"] = {{"before_files", tally.pool.before_files},
                                 {"after_files", tally.pool.after_files},
                                 {"bytes", tally.pool.bytes}};
        if (small->mode == SmallFilesMode::transactions || small->mode == SmallFilesMode::flow)
            message["loops"] = tally.pool.loops;
    }
    message["counters"] = to_json(tally.nodes.empty() ? CounterDelta{} : tally.nodes.front().delta);
    message["nodes"] = nodes_of(tally.nodes);
    if (took > kShortest && !outcome.seconds.empty()) message["timeline"] = timeline_of(outcome.seconds);
    return message;
}

}  // namespace strakes
