// Plans that the parser accepts and refuses (the front end's tests use the same files), and its tables of fields and
// backends, which are compared with schemas/plan.json.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <type_traits>

#include "backend/registry.hpp"
#include "plan/object_reader.hpp"
#include "plan/parse.hpp"
#include "plan/plan.hpp"
#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

std::map<std::string, Json> plans(const char* folder) {
    std::map<std::string, Json> found;
    for (const auto& entry : fs::directory_iterator(fs::path(STRAKES_PLANS) / folder))
        found.emplace(entry.path().stem().string(), Json::parse(std::ifstream(entry.path())));
    return found;
}

// Return the key at fault, or "accepted".
std::string key_at_fault(const Json& plan) {
    try {
        parse_plan(plan);
        return "accepted";
    } catch (const Refusal& refusal) {
        CHECK_FALSE(refusal.remedy().empty());
        return refusal.key();
    }
}

}  // namespace

TEST_CASE("every good plan is accepted") {
    const auto good = plans("good");
    CHECK(good.size() >= 12);
    for (const auto& [name, plan] : good) {
        INFO(name);
        CHECK(key_at_fault(plan) == "accepted");
    }
}

TEST_CASE("every plan that breaks the schema is refused") {
    const auto bad = plans("bad");
    CHECK(bad.size() >= 25);
    for (const auto& [name, plan] : bad) {
        INFO(name);
        CHECK(key_at_fault(plan) != "accepted");
    }
}

TEST_CASE("every plan that contradicts itself is refused, and the key is named") {
    const Json keys = Json::parse(std::ifstream(fs::path(STRAKES_PLANS) / "contradictory.json"));
    const auto contradictory = plans("contradictory");
    CHECK(contradictory.size() == keys.size());
    for (const auto& [name, plan] : contradictory) {
        INFO(name);
        CHECK(key_at_fault(plan) == keys.value(name, "no key is given for it"));
    }
}

TEST_CASE("an unknown key is named with its path, and the known ones are listed") {
    Json plan = plan_of({transfer("write", "write", {{"stop", {{"rule", "stonewall"}, {"minutes", 1}}}})});
    try {
        parse_plan(plan);
        FAIL("taken");
    } catch (const Refusal& refusal) {
        CHECK(refusal.key() == "phases[0].stop.minutes");
        CHECK(refusal.remedy() == "Known here: rule, seconds.");
    }
}

TEST_CASE("a missing key is named") {
    Json phase = metadata("create", "file-create");
    phase.erase("items");
    CHECK(key_at_fault(plan_of({phase})) == "phases[0].items");
}

TEST_CASE("phases that call fsync wait for the device, others do not") {
    Json synced = metadata("synced", "file-create");
    synced["fsync"] = true;
    synced["files"] = "synced";
    Json written = transfer("write", "write");
    written["sync"] = "fsync";
    written["files"] = "written";
    const Plan plan =
        parse_plan(plan_of({metadata("create", "file-create"), synced, transfer("buffered", "write"), written}));
    std::vector<bool> waits;
    waits.reserve(plan.phases.size());
    for (const Phase& phase : plan.phases) waits.push_back(waits_for_device(phase));
    CHECK(waits == std::vector<bool>{false, true, false, true});
}

TEST_CASE("keys that are left out have the defaults of the schema") {
    const Plan plan = parse_plan(plan_of({transfer("write", "write"), metadata("create", "file-create")}));
    const auto& write = std::get<TransferPhase>(plan.phases[0]);
    CHECK(write.files == "data");
    CHECK(write.sync == Sync::close);
    CHECK(write.pattern == Pattern::stamped);
    CHECK(write.time_open);
    CHECK_FALSE(write.direct);
    CHECK(write.stop.rule == StopRule::amount);
    const auto& create = std::get<MetadataPhase>(plan.phases[1]);
    CHECK(create.files == "items");
    CHECK(create.branch == 1);
    CHECK(create.create_with == CreateWith::open);
    CHECK(create.paths == Paths::relative);
    CHECK(create.open_mode == OpenMode::least);
    CHECK_FALSE(create.fsync);
    CHECK(create.share == Share::own);
}

namespace {

Json schema() { return Json::parse(std::ifstream(std::filesystem::path(STRAKES_PLANS) / "../../schemas/plan.json")); }

template <class Value>
Json json_of(const Value& value) {
    if constexpr (std::is_same_v<Value, std::optional<std::uint32_t>>)
        return value ? Json(*value) : Json();
    else
        return Json(value);
}

std::vector<std::string> backends_of(Kind kind) {
    std::vector<std::string> names;
    for (const BackendRow& row : kBackends)
        if (row.kinds.has(kind)) names.emplace_back(row.name);
    return names;
}

template <class Rule>
void check_rule(const Rule& rule, const Json& said) {
    if constexpr (std::is_same_v<Rule, Range>) {
        CHECK(said.at("type") == "integer");
        CHECK(said.at("minimum") == rule.least);
        CHECK((rule.most == kAnyCount ? !said.contains("maximum") : said.at("maximum") == rule.most));
    } else if constexpr (std::is_same_v<Rule, Above0>) {
        CHECK(said.at("type") == "number");
        CHECK(said.at("exclusiveMinimum") == 0);
        CHECK(said.at("maximum") == rule.most);
    } else if constexpr (std::is_same_v<Rule, YesOrNo>) {
        CHECK(said.at("type") == "boolean");
    } else if constexpr (std::is_same_v<Rule, OneBackendOf>) {
        CHECK(said.at("enum") == Json(backends_of(rule.kind)));
    } else if constexpr (!std::is_same_v<Rule, Name> && !std::is_same_v<Rule, Form>) {
        std::vector<std::string> names;
        for (const auto& [name, value] : rule.names) names.emplace_back(name);
        CHECK(said.at("enum") == Json(names));
    }
}

template <class Row, class Body>
Json default_of(const Row& row, const Body& defaults) {
    const auto& value = defaults.*row.member;
    using Rule = std::remove_const_t<decltype(row.rule)>;
    if constexpr (std::is_same_v<Rule, OneBackendOf>)
        return row_of(value).name;
    else if constexpr (std::is_enum_v<std::remove_cvref_t<decltype(value)>>)
        return name_in(row.rule.names, value);
    else if constexpr (std::is_same_v<Rule, Form>)
        return {};  // the defaults of a Form have separate tests
    else
        return json_of(value);
}

// Return the property with its $ref resolved. Keys next to the $ref override the target's keys.
Json resolved(const Json& document, const Json& property) {
    if (!property.contains("$ref")) return property;
    const auto reference = property.at("$ref").get<std::string>();
    Json target = document.at(Json::json_pointer(reference.substr(1)));
    target.update(property);
    return target;
}

template <class Rows, class Body>
void check_kind(const Json& object, const Json& document, const Rows& rows, const Body& defaults, bool has_kind) {
    const Json& properties = object.at("properties");
    std::set<std::string> keys, needed;
    if (has_kind) keys = needed = {"kind"};
    const auto check_row = [&](const auto& row) {
        const std::string key(row.key);
        CAPTURE(key);
        keys.insert(key);
        if (row.presence == Presence::needed) needed.insert(key);
        REQUIRE(properties.contains(key));
        const Json said = resolved(document, properties.at(key));
        check_rule(row.rule, said);
        if (row.presence == Presence::needed) return;
        const Json otherwise = default_of(row, defaults);
        if (!otherwise.is_null()) CHECK(said.at("default") == otherwise);
    };
    std::apply([&](const auto&... row) { (check_row(row), ...); }, rows);
    std::set<std::string> there;
    for (const auto& [key, unused] : properties.items()) there.insert(key);
    CHECK(there == keys);
    CHECK(object.at("required").get<std::set<std::string>>() == needed);
}

}  // namespace

TEST_CASE("every key of a phase is in the schema with its range and default, and the schema has no other keys") {
    const Json document = schema();
    const Json& kinds = document.at("$defs");
    check_kind(kinds.at("transfer"), document, kTransferFields, TransferPhase{}, true);
    check_kind(kinds.at("stream"), document, kStreamFields, stream_defaults(), true);
    check_kind(kinds.at("metadata"), document, kMetadataFields, MetadataPhase{}, true);
    check_kind(kinds.at("small-files"), document, kSmallFilesFields, SmallFilesPhase{}, true);
    check_kind(kinds.at("probe"), document, kProbeFields, ProbePhase{}, true);
    check_kind(kinds.at("stage"), document, kStageFields, StagePhase{}, true);
    check_kind(kinds.at("sizes").at("items"), document, kSizeShareFields, SizeShare{}, false);
    check_kind(kinds.at("training"), document, kTrainingFields, TrainingPhase{}, true);
    check_kind(kinds.at("small-files").at("properties").at("flow").at("items"), document, kFlowFields, FlowOperation{},
               false);
}

TEST_CASE("every backend has one row, in the order of their values") {
    for (std::size_t i = 0; i < kBackends.size(); ++i) CHECK(static_cast<std::size_t>(kBackends[i].backend) == i);
}
