#include "protocol/sample.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>

#include "system/queries.hpp"

namespace strakes {

namespace {

using Json = nlohmann::ordered_json;

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

std::string_view stopped_by(const Tally& tally, bool cancelled) {
    if (tally.failed) return "error";
    if (cancelled) return "cancel";
    return tally.out_of_time ? "seconds" : "amount";
}

Json rows_of(const std::vector<RankRow>& ranks, std::size_t first, std::uint64_t origin) {
    Json rows = Json::array();
    for (const RankRow& row : ranks) {
        rows.push_back({first + rows.size(), seconds(elapsed(origin, row.start)), seconds(elapsed(origin, row.end)),
                        row.bytes, row.operations, row.errors, seconds(row.slowest), seconds(row.open),
                        seconds(row.close), seconds(row.processor.running_ns), seconds(row.processor.runnable_ns)});
    }
    return rows;
}

Json begun_of(const Tally& tally) {
    const auto [first, last] = std::ranges::minmax_element(tally.rows, {}, &RankRow::start);
    const auto rank = static_cast<std::uint32_t>(last - tally.rows.begin());
    const auto after = std::ranges::upper_bound(tally.nodes, rank, {}, &NodeCounters::first_rank);
    return {{"apart_s", seconds(elapsed(first->start, last->start))},
            {"last_rank", rank},
            {"last_host", after == tally.nodes.begin() ? host_name() : std::prev(after)->host},
            {"clock_uncertainty_s", seconds(tally.start.clock_uncertainty_ns)},
            {"crowded", tally.start.crowded}};
}

Json histogram_of(const Histogram& histogram) {
    return {{"unit", "ns"}, {"sub_bits", Histogram::kSubBits}, {"buckets", histogram.buckets()}};
}

std::string_view call_of(const Phase& phase) {
    if (const auto* training = std::get_if<TrainingPhase>(&phase))
        return training->operation == TrainingOperation::train ? "read" : "write";
    const auto* transfer = std::get_if<TransferPhase>(&phase);
    if (transfer == nullptr) return phase_operation(phase);
    return transfer->operation == TransferOperation::read ? "read" : "write";
}

std::string_view wait_of(const Phase& phase) {
    if (std::holds_alternative<TrainingPhase>(phase)) return "batch-wait";
    return std::holds_alternative<ProbePhase>(phase) ? "lag" : "gather";
}

std::string_view name_of(const Phase& phase, std::uint8_t kind) {
    if (kind == Latencies::kReads) return "read";
    if (kind == Latencies::kWaits) return wait_of(phase);
    if (kind < Latencies::kFirstOfFlow) return call_of(phase);
    for (const auto& [name, call] : kFlowCalls)
        if (kind == Latencies::kFirstOfFlow + static_cast<unsigned>(call)) return name;
    return "";
}

Json histograms_of(const Phase& phase, const Latencies& all) {
    // A small-files phase reports only the kinds of calls that it made; other phases report even unused kinds.
    const bool flows = std::holds_alternative<SmallFilesPhase>(phase);
    Json histograms = Json::object();
    for (std::uint8_t kind = flows ? Latencies::kFirstOfFlow : 0; kind < all.kinds(); ++kind) {
        const Histogram* histogram = all.of_kind(kind);
        if (histogram != nullptr && (!flows || histogram->count() > 0))
            histograms[std::string(name_of(phase, kind))] = histogram_of(*histogram);
    }
    return histograms;
}

Json cache_of(const CacheState& cache) {
    Json row = {{"method", cache.method},
                {"file_bytes", cache.file_bytes},
                {"resident_before_bytes", cache.resident_before_bytes},
                {"resident_after_bytes", cache.resident_after_bytes}};
    if (cache.error_bytes > 0) row["error_bytes"] = cache.error_bytes;
    return row;
}

std::uint64_t transfer_bytes_of(const Phase& phase) {
    if (const auto* transfer = std::get_if<TransferPhase>(&phase)) return transfer->transfer_bytes;
    if (const auto* training = std::get_if<TrainingPhase>(&phase)) return training->transfer_bytes;
    const auto* stage = std::get_if<StagePhase>(&phase);
    return stage != nullptr ? stage->transfer_bytes : 0;
}

// Only ranks that read the staged file count operations.
Json staged_of(const Tally& tally) {
    const auto readers = std::ranges::count_if(tally.rows, [](const RankRow& row) { return row.operations > 0; });
    return {{"readers", readers}, {"read_bytes", tally.read_bytes}};
}

Json trained_of(const Trained& trained) {
    const double ranks = static_cast<double>(std::max<std::uint64_t>(trained.ranks, 1));
    return {{"accelerators", trained.ranks},
            {"steps", trained.steps},
            {"compute_s", seconds(trained.compute_ns)},
            {"wait_s", seconds(trained.wait_ns)},
            {"utilisation_percent", 100 * trained.utilisation / ranks}};
}

Json nodes_of(const std::vector<NodeCounters>& nodes) {
    Json list = Json::array();
    for (const NodeCounters& node : nodes)
        list.push_back({{"host", node.host}, {"first_rank", node.first_rank}, {"counters", to_json(node.delta)}});
    return list;
}

Json impact_of(const Impact& impact, std::uint64_t held_ns) {
    Json message = {{"share", impact.share}, {"held_back_s", seconds(held_ns)}};
    if (impact.bytes_per_s > 0) message["bytes_per_s"] = impact.bytes_per_s;
    if (impact.operations_per_s > 0) message["operations_per_s"] = impact.operations_per_s;
    return message;
}

// hints_not_in_effect gives the requested and the actual value of each hint that the library did not adopt.
Json library_of(const TransferPhase& transfer, const Hints& effective) {
    Json hints = Json::object(), others = Json::object();
    for (const auto& [name, value] : effective) hints[name] = value;
    for (const auto& [name, asked] : transfer.hints) {
        const std::string has = hints.value(name, "");
        if (has != asked) others[name] = {asked, has};
    }
    return {
        {"collective", transfer.collective}, {"hints", std::move(hints)}, {"hints_not_in_effect", std::move(others)}};
}

void add_details(Json& message, const Phase& phase, const Tally& tally) {
    const auto* transfer = std::get_if<TransferPhase>(&phase);
    const auto* stage = std::get_if<StagePhase>(&phase);
    message["histograms"] = histograms_of(phase, tally.latencies);
    message["effective"] = {{"backend", phase_backend(phase)},
                            {"queue_depth", tally.queue_depth},
                            {"direct", transfer != nullptr && tally.direct},
                            {"transfer_bytes", transfer_bytes_of(phase)},
                            {"verified_bytes", tally.verified_bytes}};
    // With writers, data_s is left out: ranks that do not write generate most of the data.
    if (transfer != nullptr && !transfer->gathers()) message["effective"]["data_s"] = seconds(tally.data_ns);
    if (transfer != nullptr && row_of(transfer->backend).needs_processes)
        message["effective"].update(library_of(*transfer, tally.hints));
    const auto* training = std::get_if<TrainingPhase>(&phase);
    const bool trains = training != nullptr && training->operation == TrainingOperation::train;
    if (trains) message["trained"] = trained_of(tally.trained);
    if (transfer != nullptr || stage != nullptr || trains) message["cache"] = cache_of(tally.cache);
    if (stage != nullptr) message["staged"] = staged_of(tally);
    const auto* metadata = std::get_if<MetadataPhase>(&phase);
    if (metadata != nullptr && is_listing(metadata->operation))
        message["listed"] = {{"directories", tally.listed.directories}, {"matches", tally.listed.matches}};
    if (const auto* small = std::get_if<SmallFilesPhase>(&phase)) {
        message["read_bytes"] = tally.read_bytes;
        message["population"] = {{"before_files", tally.pool.before_files},
                                 {"after_files", tally.pool.after_files},
                                 {"bytes", tally.pool.bytes}};
        if (small->mode == SmallFilesMode::transactions || small->mode == SmallFilesMode::flow)
            message["loops"] = tally.pool.loops;
    }
}

// Adds amounts, and rates over the time from the first start to the last end.
void add_amounts(Json& message, const Totals& totals) {
    const double took = seconds(elapsed(totals.start, totals.end));
    message["bytes"] = totals.bytes;
    message["operations"] = totals.operations;
    message["errors"] = totals.errors;
    message["elapsed_s"] = took;
    message["bytes_per_s"] = rate(totals.bytes, took);
    message["operations_per_s"] = rate(totals.operations, took);
}

// Times of a part are relative to the start of the whole phase.
Json part_of(const PhaseOutcome& outcome, const MixedPhase& mixed, std::size_t part, std::uint64_t origin) {
    const Phase& phase = outcome.plan.phases[outcome.index + 1 + part];
    const Tally& tally = outcome.tally.parts.at(part);
    Json message;
    message["name"] = phase_name(phase);
    message["kind"] = phase_kind(phase);
    message["operation"] = phase_operation(phase);
    message["stopped_by"] = stopped_by(tally, outcome.cancelled);
    add_amounts(message, totals_of(tally.rows));
    message["ranks"] = rows_of(tally.rows, mixed.first_rank_of(part), origin);
    if (outcome.impact.limits()) message["impact"] = impact_of(outcome.impact, tally.held_ns);
    add_details(message, phase, tally);
    return message;
}

}  // namespace

double unix_seconds(const Timeline& timeline, std::uint64_t moment) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    return now.count() - seconds(elapsed(moment, timeline.now()));
}

Json sample_of(const PhaseOutcome& outcome) {
    const Tally& tally = outcome.tally;
    const Phase& phase = outcome.plan.phases[outcome.index];
    const Totals totals = totals_of(tally.rows);
    Json message;
    message["phase"] = outcome.plan.number_of(outcome.index);
    message["name"] = phase_name(phase);
    message["kind"] = phase_kind(phase);
    message["operation"] = phase_operation(phase);
    message["host"] = host_name();
    message["origin_unix_s"] = unix_seconds(outcome.timeline, totals.start);
    message["stopped_by"] = stopped_by(tally, outcome.cancelled);
    add_amounts(message, totals);
    message["columns"] = {"rank",      "start_s", "end_s",   "bytes",     "operations", "errors",
                          "slowest_s", "open_s",  "close_s", "running_s", "runnable_s"};
    message["ranks"] = rows_of(tally.rows, 0, totals.start);
    if (tally.rows.size() > 1 && tally.start.begun) message["begun"] = begun_of(tally);
    if (outcome.impact.limits()) message["impact"] = impact_of(outcome.impact, tally.held_ns);
    if (const auto* mixed = std::get_if<MixedPhase>(&phase)) {
        for (std::size_t part = 0; part < mixed->parts(); ++part)
            message["parts"].push_back(part_of(outcome, *mixed, part, totals.start));
    } else {
        add_details(message, phase, tally);
    }
    message["counters"] = to_json(tally.nodes.empty() ? CounterDelta{} : tally.nodes.front().delta);
    message["nodes"] = nodes_of(tally.nodes);
    return message;
}

}  // namespace strakes
