// Reads a phase from JSON into its members, row by row.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "plan/kind.hpp"
#include "plan/object_reader.hpp"
#include "plan/plan.hpp"

namespace strakes {

inline constexpr std::uint64_t kMostPhases = 64;

std::string parse_name(const ObjectReader& reader, std::string_view key);
Backend parse_backend(const ObjectReader& reader, std::string_view key, Kind kind);
void read_form(const ObjectReader& phase, std::string_view key, Stop& stop);
void read_form(const ObjectReader& phase, std::string_view key, Hints& hints);
void read_form(const ObjectReader& phase, std::string_view key, std::string& name_part);
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
            value = static_cast<std::uint32_t>(number);  // no row allows more than its member can hold
    } else if constexpr (std::is_same_v<Rule, Above0>) {
        value = reader.positive_number(row.key, row.rule.most);
    } else if constexpr (std::is_same_v<Rule, YesOrNo>) {
        value = reader.boolean(row.key);
    } else {
        value = reader.choice(row.key, row.rule.names);
    }
}

// Read an object that may have the keys of these rows and, if it is a phase, `kind`.
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

// A part of a mixed phase may have only some kinds.
enum class Place : std::uint8_t { part, whole };
Phase parse_phase(const nlohmann::json& body, const std::string& path, Place place);
// Return the mixed phase, followed by its parts.
std::vector<Phase> parse_mixed(const nlohmann::json& body, const std::string& path);

}  // namespace strakes
