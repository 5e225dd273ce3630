// Parses a plan by the rules of schemas/plan.json, key by key.
#include "plan/parse.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "plan/kind.hpp"
#include "plan/object_reader.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostPhases = 64, kMostParts = 64;

std::string parse_name(const ObjectReader& reader, std::string_view key) {
    std::string name = reader.string(key);
    const auto small = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    const bool good = !name.empty() && name.size() <= 32 && small(name.front()) &&
                      std::ranges::all_of(name, [&](char c) { return small(c) || c == '-'; });
    if (!good) reader.refuse(key, "is not a name", "1 to 32 of a-z, 0-9 and -, not starting with -.");
    return name;
}

Backend parse_backend(const ObjectReader& reader, std::string_view key, Kind kind) {
    std::vector<std::pair<std::string_view, Backend>> there;
    for (const BackendRow& row : kBackends)
        if (row.kinds.has(kind)) there.emplace_back(row.name, row.backend);
    return reader.choice(key, there);
}

void read_form(const ObjectReader& phase, std::string_view key, Stop& stop) {
    const ObjectReader reader(phase.value(key), phase.path_of(key), {"rule", "seconds"});
    stop.rule = reader.choice("rule", kStopRules);
    if (stop.rule != StopRule::amount)
        stop.seconds = reader.positive_number("seconds", kDay);
    else if (reader.has("seconds"))
        reader.refuse("seconds", "contradicts the rule 'amount'",
                      "Leave it out, or use the rule stonewall or seconds.");
}

// MPI implementations truncate or refuse longer names and values.
void read_form(const ObjectReader& phase, std::string_view key, Hints& hints) {
    constexpr std::size_t kMost = 64, kLongestName = 35, kLongestValue = 255;
    const nlohmann::json& object = phase.value(key);
    if (!object.is_object() || object.size() > kMost)
        phase.refuse(key, "is not an object of at most 64 hints", "Write it as {\"name\": \"value\", ...}.");
    const auto visible = [](char c) { return c >= '!' && c <= '~'; };
    for (const auto& [name, value] : object.items()) {
        if (name.empty() || name.size() > kLongestName || !std::ranges::all_of(name, visible))
            phase.refuse(key, "has an invalid name", "1 to 35 visible characters of ASCII, no blanks.");
        const bool good = value.is_string() && !value.get_ref<const std::string&>().empty() &&
                          value.get_ref<const std::string&>().size() <= kLongestValue &&
                          std::ranges::all_of(value.get_ref<const std::string&>(), visible);
        if (!good)
            phase.refuse(std::string(key) + "." + name, "is not a hint's value",
                         "Text of 1 to 255 visible characters of ASCII, no blanks; numbers in quotes, too.");
        // Hints of PnetCDF and ParaStation MPI by which a plan would write elsewhere.
        if (name.starts_with("nc_burst_buf") || name.starts_with("e10_") ||
            value.get_ref<const std::string&>().find('/') != std::string::npos)
            phase.refuse(std::string(key) + "." + name, "may write to another directory", "Leave it out.");
        hints.emplace_back(name, value.get<std::string>());
    }
}

void read_form(const ObjectReader& phase, std::string_view key, std::string& name_part) {
    constexpr std::size_t kLongest = 64;
    name_part = phase.string(key);
    const auto fits = [](char c) { return c >= '!' && c <= '~' && c != '/'; };
    if (name_part.size() > kLongest || !std::ranges::all_of(name_part, fits))
        phase.refuse(key, "is not a part of a file's name", "0 to 64 visible characters of ASCII, no blanks and no /.");
}

void read_form(const ObjectReader& phase, std::string_view key, std::vector<FlowOperation>& flow);
void read_form(const ObjectReader& phase, std::string_view key, std::vector<SizeShare>& shares);

template <class Row, class Body>
void read_field(const ObjectReader& reader, const Row& row, Body& body) {
    if (row.presence == Presence::optional && !reader.has(row.key)) return;
    auto& value = body.*row.member;
    using Value = std::remove_reference_t<decltype(value)>;
    using Rule = std::remove_const_t<decltype(row.rule)>;
    if constexpr (std::is_same_v<Rule, Name>) {
        value = parse_name(reader, row.key);
    } else if constexpr (std::is_same_v<Rule, OneBackendOf>) {
        value = parse_backend(reader, row.key, row.rule.kind);
    } else if constexpr (std::is_same_v<Rule, Form>) {
        read_form(reader, row.key, value);
    } else if constexpr (std::is_same_v<Rule, Range>) {
        const std::uint64_t number = reader.integer(row.key, row.rule.least, row.rule.most);
        if constexpr (std::is_same_v<Value, std::uint64_t>)
            value = number;
        else
            value = static_cast<std::uint32_t>(number);  // No row allows more than its member can hold.
    } else if constexpr (std::is_same_v<Rule, Above0>) {
        value = reader.positive_number(row.key, row.rule.most);
    } else if constexpr (std::is_same_v<Rule, YesOrNo>) {
        value = reader.boolean(row.key);
    } else {
        value = reader.choice(row.key, row.rule.names);
    }
}

// Read an object, which may have the keys in `rows` and, if the object is a phase, the key `kind`.
template <class Body, class... Row>
Body read_fields(const nlohmann::json& object, const std::string& path, const std::tuple<Row...>& rows,
                 Body body = {}) {
    const ObjectReader reader = std::apply(
        [&](const Row&... row) {
            if constexpr (requires { body.name; }) return ObjectReader(object, path, {"kind", row.key...});
            return ObjectReader(object, path, {row.key...});
        },
        rows);
    std::apply([&](const Row&... row) { (read_field(reader, row, body), ...); }, rows);
    return body;
}

void read_form(const ObjectReader& phase, std::string_view key, std::vector<FlowOperation>& flow) {
    constexpr std::size_t kMost = 256;
    const nlohmann::json& list = phase.value(key);
    if (!list.is_array() || list.size() > kMost)
        phase.refuse(key, "is not a list of at most 256 operations", "Write it as [{\"op\": ...}, ...].");
    for (std::size_t i = 0; i < list.size(); ++i)
        flow.push_back(
            read_fields<FlowOperation>(list[i], phase.path_of(key) + "[" + std::to_string(i) + "]", kFlowFields));
}

void read_form(const ObjectReader& phase, std::string_view key, std::vector<SizeShare>& shares) {
    constexpr std::size_t kMost = 64;
    const nlohmann::json& list = phase.value(key);
    if (!list.is_array() || list.size() > kMost)
        phase.refuse(key, "is not a list of at most 64 sizes",
                     "Write it as [{\"bytes\": ..., \"percent\": ...}, ...].");
    for (std::size_t i = 0; i < list.size(); ++i)
        shares.push_back(
            read_fields<SizeShare>(list[i], phase.path_of(key) + "[" + std::to_string(i) + "]", kSizeShareFields));
}

void take_common_stop(Phase& part, const Stop& stop, const std::string& path) {
    if (stop.rule == StopRule::amount) return;
    if (std::holds_alternative<ProbePhase>(part))
        throw Refusal("'" + path + ".kind' is probe, which ends by its own seconds", path + ".kind",
                      "Give the other parts a stop of their own, and leave out the one of all.");
    if (phase_stop(part).rule != StopRule::amount)
        throw Refusal("'" + path + ".stop' is there besides the stop of all parts", path + ".stop",
                      "Leave out one of them.");
    std::visit([&stop](auto& body) { body.stop = stop; }, part);
}

// Position of a phase: a part of a mixed phase, which cannot have every kind, or a whole phase of the plan.
enum class Place : std::uint8_t { part, whole };
Phase parse_phase(const nlohmann::json& body, const std::string& path, Place place);

// Return the mixed phase, followed by its parts.
std::vector<Phase> parse_mixed(const nlohmann::json& body, const std::string& path) {
    const ObjectReader reader(body, path, {"kind", "name", "parts", "stop"});
    MixedPhase mixed;
    mixed.name = parse_name(reader, "name");
    const nlohmann::json& list = reader.value("parts");
    if (!list.is_array() || list.size() < 2 || list.size() > kMostParts)
        reader.refuse("parts", "is not a list of 2 to 64 parts",
                      "Write it as [{\"ranks\": ..., \"phase\": {...}}, ...].");
    if (reader.has("stop")) read_form(reader, "stop", mixed.stop);
    std::vector<Phase> phases(1);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const ObjectReader part(list[i], reader.path_of("parts") + "[" + std::to_string(i) + "]", {"ranks", "phase"});
        mixed.part_ranks.push_back(static_cast<std::uint32_t>(part.integer("ranks", 1, kMostRanks)));
        const std::string key = part.path_of("phase");
        phases.push_back(parse_phase(part.value("phase"), key, Place::part));
        take_common_stop(phases.back(), mixed.stop, key);
    }
    mixed.backend = backend_of(phases[1]);
    phases.front() = std::move(mixed);
    return phases;
}

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
                break;  // parse_plan() handles mixed phases, which become several phases.
        }
    }
    throw Refusal("'" + path + ".kind' is missing or unknown", path + ".kind", known + ".");
}

}  // namespace

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
