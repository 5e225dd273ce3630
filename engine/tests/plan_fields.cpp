// Compares the tables of plan fields and of backends with schemas/plan.json, key by key.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>

#include "backend/registry.hpp"
#include "plan/plan.hpp"
#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;

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
        return {};  // a Form has its own tests of defaults
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
