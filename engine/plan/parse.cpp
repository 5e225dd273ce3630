// The form of a plan: the same rules as schemas/plan.json, key by key.
#include "plan/parse.hpp"

#include <algorithm>
#include <iterator>

#include "plan/object_reader.hpp"
#include "plan/parse_parts.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostDepth = 4096;
constexpr std::uint64_t kMostDelayNs = 1'000'000'000;

TransferPhase parse_transfer(const nlohmann::json& body, const std::string& path) {
    const ObjectReader reader(body, path,
                              {"kind",
                               "name",
                               "operation",
                               "backend",
                               "files",
                               "layout",
                               "access",
                               "transfer_bytes",
                               "block_bytes",
                               "segments",
                               "writers",
                               "grouping",
                               "direct",
                               "sync",
                               "time_open",
                               "pattern",
                               "verify",
                               "preallocate",
                               "cache",
                               "rank_shift",
                               "read_percent",
                               "delay_ns",
                               "stop",
                               "queue_depth",
                               "compressible_percent",
                               "duplicate_percent",
                               "collective",
                               "hints",
                               "chunk_bytes"});
    TransferPhase phase;
    phase.name = parse_name(reader, "name");
    phase.operation = reader.choice("operation", kTransferOperations);
    phase.backend = reader.choice_or("backend", kBackends, phase.backend);
    phase.queue_depth = static_cast<std::uint32_t>(reader.integer_or("queue_depth", 1, kMostDepth, 1));
    if (reader.has("files")) phase.files = parse_name(reader, "files");
    phase.layout = reader.choice("layout", kLayouts);
    phase.access = reader.choice("access", kAccesses);
    phase.transfer_bytes = reader.integer("transfer_bytes", 1, kMostBytes);
    phase.block_bytes = reader.integer("block_bytes", 1, kMostBytes);
    phase.segments = reader.integer("segments", 1, kMostCount);
    phase.writers = static_cast<std::uint32_t>(reader.integer_or("writers", 0, kMostRanks, 0));
    phase.grouping = reader.choice_or("grouping", kGroupings, phase.grouping);
    phase.direct = reader.boolean_or("direct", phase.direct);
    phase.sync = reader.choice_or("sync", kSyncs, phase.sync);
    phase.time_open = reader.boolean_or("time_open", phase.time_open);
    phase.pattern = reader.choice_or("pattern", kPatterns, phase.pattern);
    phase.compressible_percent = static_cast<std::uint32_t>(reader.integer_or("compressible_percent", 0, 100, 0));
    phase.duplicate_percent = static_cast<std::uint32_t>(reader.integer_or("duplicate_percent", 0, 100, 0));
    phase.verify = reader.boolean_or("verify", phase.verify);
    phase.preallocate = reader.boolean_or("preallocate", phase.preallocate);
    phase.cache = reader.choice_or("cache", kCaches, phase.cache);
    phase.rank_shift = reader.integer_or("rank_shift", 0, kAnyCount, 0);
    if (reader.has("read_percent"))
        phase.read_percent = static_cast<std::uint32_t>(reader.integer("read_percent", 1, 99));
    phase.delay_ns = reader.integer_or("delay_ns", 0, kMostDelayNs, 0);
    phase.collective = reader.boolean_or("collective", phase.collective);
    if (reader.has("hints")) phase.hints = parse_hints(reader);
    phase.chunk_bytes = reader.integer_or("chunk_bytes", 0, UINT32_MAX, 0);
    phase.stop = parse_stop(reader);
    return phase;
}

// What dd does: a transfer phase whose segments are single transfers.
TransferPhase parse_stream(const nlohmann::json& body, const std::string& path) {
    const ObjectReader reader(body, path,
                              {"kind", "name", "operation", "backend", "files", "block_bytes", "count", "direct",
                               "sync", "pattern", "verify", "cache", "rank_shift", "stop"});
    TransferPhase phase;
    phase.stream = true;
    phase.name = parse_name(reader, "name");
    phase.operation = reader.choice("operation", kStreamOperations);
    phase.backend = reader.choice_or("backend", kStreamBackends, phase.backend);
    phase.files = reader.has("files") ? parse_name(reader, "files") : "stream";
    phase.layout = Layout::file_per_process;
    phase.access = Access::segmented;
    phase.transfer_bytes = phase.block_bytes = reader.integer("block_bytes", 1, kMostBytes);
    phase.segments = reader.integer("count", 1, kMostCount);
    phase.direct = reader.boolean_or("direct", phase.direct);
    phase.sync = reader.choice_or("sync", kSyncs, phase.sync);
    phase.pattern = reader.choice_or("pattern", kPatterns, phase.pattern);
    phase.verify = reader.boolean_or("verify", phase.verify);
    phase.cache = reader.choice_or("cache", kCaches, phase.cache);
    phase.rank_shift = reader.integer_or("rank_shift", 0, kAnyCount, 0);
    phase.stop = parse_stop(reader);
    return phase;
}

MetadataPhase parse_metadata(const nlohmann::json& body, const std::string& path) {
    const ObjectReader reader(
        body, path,
        {"kind", "name", "operation", "backend", "files", "directory", "items", "depth", "branch", "file_bytes",
         "create_with", "paths", "open_mode", "fsync", "rank_shift", "share", "stop", "queue_depth", "delay_ns"});
    MetadataPhase phase;
    phase.name = parse_name(reader, "name");
    phase.operation = reader.choice("operation", kMetadataOperations);
    phase.backend = reader.choice_or("backend", kMetadataBackends, phase.backend);
    phase.queue_depth = static_cast<std::uint32_t>(reader.integer_or("queue_depth", 1, kMostDepth, 1));
    if (reader.has("files")) phase.files = parse_name(reader, "files");
    phase.directory = reader.choice("directory", kDirectories);
    phase.items = reader.integer("items", 1, kMostCount);
    phase.depth = static_cast<std::uint32_t>(reader.integer_or("depth", 0, 16, phase.depth));
    phase.branch = static_cast<std::uint32_t>(reader.integer_or("branch", 1, 1024, phase.branch));
    phase.file_bytes = reader.integer_or("file_bytes", 0, kMostCount, 0);
    phase.create_with = reader.choice_or("create_with", kCreateWiths, phase.create_with);
    phase.paths = reader.choice_or("paths", kPaths, phase.paths);
    phase.open_mode = reader.choice_or("open_mode", kOpenModes, phase.open_mode);
    phase.fsync = reader.boolean_or("fsync", phase.fsync);
    phase.rank_shift = reader.integer_or("rank_shift", 0, kAnyCount, 0);
    phase.share = reader.choice_or("share", kShares, phase.share);
    phase.delay_ns = reader.integer_or("delay_ns", 0, kMostDelayNs, 0);
    phase.stop = parse_stop(reader);
    return phase;
}

}  // namespace

Phase parse_phase(const nlohmann::json& body, const std::string& path, Kinds kinds) {
    const auto kind = body.is_object() ? body.find("kind") : body.end();
    if (!body.is_object()) throw Refusal("'" + path + "' is not an object", path, "A phase is an object.");
    if (kind != body.end() && *kind == "transfer") return parse_transfer(body, path);
    if (kind != body.end() && *kind == "metadata") return parse_metadata(body, path);
    if (kind != body.end() && *kind == "stream") return parse_stream(body, path);
    if (kind != body.end() && *kind == "small-files") return parse_small_files(body, path);
    if (kind != body.end() && *kind == "probe") return parse_probe(body, path);
    if (kind != body.end() && *kind == "stage" && kinds == Kinds::all) return parse_stage(body, path);
    std::string known;
    for (const std::string_view one : kKinds)
        if (kinds == Kinds::all || (one != "stage" && one != "mixed"))
            known.append(known.empty() ? "One of: " : ", ").append(one);
    throw Refusal("'" + path + ".kind' is missing or unknown", path + ".kind", known + ".");
}

Plan parse_plan(const nlohmann::json& document) {
    const ObjectReader reader(document, "", {"schema", "seed", "team", "phases"});
    static_cast<void>(reader.integer("schema", 1, 1));
    Plan plan;
    plan.seed = static_cast<std::uint32_t>(reader.integer("seed", 0, UINT32_MAX));
    const ObjectReader team(reader.value("team"), "team", {"ranks", "ranks_per_node", "memory_hog_bytes"});
    plan.ranks = static_cast<std::uint32_t>(team.integer("ranks", 1, kMostRanks));
    if (team.has("ranks_per_node"))
        plan.ranks_per_node = static_cast<std::uint32_t>(team.integer("ranks_per_node", 1, kMostRanks));
    plan.memory_hog_bytes = team.integer_or("memory_hog_bytes", 0, kMostBytes, 0);
    const nlohmann::json& phases = reader.value("phases");
    if (!phases.is_array() || phases.empty() || phases.size() > kMostPhases)
        reader.refuse("phases", "is not a list of 1 to 64 phases", "Write it as [{...}, ...].");
    for (std::size_t i = 0; i < phases.size(); ++i) {
        const std::string path = "phases[" + std::to_string(i) + "]";
        if (phases[i].is_object() && phases[i].contains("kind") && phases[i]["kind"] == "mixed")
            std::ranges::move(parse_mixed(phases[i], path), std::back_inserter(plan.phases));
        else
            plan.phases.push_back(parse_phase(phases[i], path, Kinds::all));
    }
    check_plan(plan);
    return plan;
}

}  // namespace strakes
