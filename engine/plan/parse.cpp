// Parses a plan by the rules of schemas/plan.json, key by key.
#include "plan/parse.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "plan/object_reader.hpp"
#include "plan/parse_parts.hpp"

namespace strakes {

namespace {

TransferPhase read_stream(const nlohmann::json& body, const std::string& path) {
    TransferPhase phase = read_fields(body, path, kStreamFields, stream_defaults());
    phase.transfer_bytes = phase.block_bytes;
    return phase;
}

std::vector<std::uint32_t> read_numbers(const ObjectReader& team, const char* key) {
    if (!team.has(key)) return {};
    if (auto numbers = numbers_in(team.string(key), Processors::most())) return *std::move(numbers);
    team.refuse(key, "is not a list of numbers below " + std::to_string(Processors::most()), "Write it as 0-3,8.");
}

Placement read_placement(const ObjectReader& team) {
    Placement placement;
    placement.processors = read_numbers(team, "processors");
    placement.numa_nodes = read_numbers(team, "numa_nodes");
    if (team.has("buffer_pages")) placement.buffer_pages = team.choice("buffer_pages", kPages);
    if (!placement.processors.empty() && !placement.numa_nodes.empty())
        team.refuse("numa_nodes", "is given beside processors", "Give one of the two.");
    return placement;
}

}  // namespace

Phase parse_phase(const nlohmann::json& body, const std::string& path, Place place) {
    if (!body.is_object()) throw Refusal("'" + path + "' is not an object", path, "A phase is an object.");
    const auto given = body.find("kind");
    std::string known;
    for (const auto& [name, kind] : kKinds) {
        if (place == Place::part && (kind == Kind::stage || kind == Kind::training || kind == Kind::mixed)) continue;
        known.append(known.empty() ? "One of: " : ", ").append(name);
        if (given == body.end() || *given != name) continue;
        switch (kind) {
            case Kind::transfer:
                return read_fields<TransferPhase>(body, path, kTransferFields);
            case Kind::metadata:
                return read_fields<MetadataPhase>(body, path, kMetadataFields);
            case Kind::stream:
                return read_stream(body, path);
            case Kind::small_files:
                return read_fields<SmallFilesPhase>(body, path, kSmallFilesFields);
            case Kind::probe:
                return read_fields<ProbePhase>(body, path, kProbeFields);
            case Kind::stage:
                return read_fields<StagePhase>(body, path, kStageFields);
            case Kind::training:
                return read_fields<TrainingPhase>(body, path, kTrainingFields);
            case Kind::mixed:
                break;  // handled by parse_plan(), since it becomes several phases
        }
    }
    throw Refusal("'" + path + ".kind' is missing or unknown", path + ".kind", known + ".");
}

Plan parse_plan(const nlohmann::json& document) {
    const ObjectReader reader(document, "", {"schema", "seed", "team", "phases"});
    static_cast<void>(reader.integer("schema", 1, 1));
    Plan plan;
    plan.seed = static_cast<std::uint32_t>(reader.integer("seed", 0, UINT32_MAX));
    const ObjectReader team(
        reader.value("team"), "team",
        {"ranks", "ranks_per_node", "memory_hog_bytes", "processors", "numa_nodes", "buffer_pages"});
    plan.ranks = static_cast<std::uint32_t>(team.integer("ranks", 1, kMostRanks));
    if (team.has("ranks_per_node"))
        plan.ranks_per_node = static_cast<std::uint32_t>(team.integer("ranks_per_node", 1, kMostRanks));
    plan.memory_hog_bytes = team.integer_or("memory_hog_bytes", 0, kMostBytes, 0);
    plan.placement = read_placement(team);
    const nlohmann::json& phases = reader.value("phases");
    if (!phases.is_array() || phases.empty() || phases.size() > kMostPhases)
        reader.refuse("phases", "is not a list of 1 to 64 phases", "Write it as [{...}, ...].");
    for (std::size_t i = 0; i < phases.size(); ++i) {
        const std::string path = "phases[" + std::to_string(i) + "]";
        if (phases[i].is_object() && phases[i].contains("kind") && phases[i]["kind"] == "mixed")
            std::ranges::move(parse_mixed(phases[i], path), std::back_inserter(plan.phases));
        else
            plan.phases.push_back(parse_phase(phases[i], path, Place::whole));
    }
    check_plan(plan);
    return plan;
}

}  // namespace strakes
