// A key of a phase: its name, the member that stores it, its permitted values, and whether it is required. The member's
// initialiser is the default. The parser reads these rows, and tests compare schemas/plan.json with them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "plan/kind.hpp"

namespace strakes {

inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50U;
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 30U;
inline constexpr std::uint64_t kMostRanks = 65536;
inline constexpr std::uint64_t kMostDepth = 4096;
inline constexpr std::uint64_t kMostAttributeBytes = 65536;  // of a value: Linux's XATTR_SIZE_MAX
inline constexpr std::uint64_t kMostDelayNs = 1'000'000'000;
inline constexpr std::uint64_t kAnyCount = UINT64_MAX;
inline constexpr double kDay = 86400;

// Rules for the value of a key.
struct Range {
    std::uint64_t least, most;
};
inline constexpr Range kPercent{.least = 0, .most = 100};
struct Above0 {
    double most;
};
template <class Value>
struct OneOf {
    std::span<const std::pair<std::string_view, Value>> names;
};
template <class Table>
OneOf(const Table&) -> OneOf<typename Table::value_type::second_type>;
struct OneBackendOf {
    Kind kind;
};
struct Name {};     // of a phase or of a set of files
struct YesOrNo {};  // true or false
struct Form {};     // parsed by an overload of read_form()

enum class Presence : std::uint8_t { needed, optional };

template <class Body, class Value, class Rule>
struct Field {
    std::string_view key;
    Value Body::* member;
    Rule rule{};
    Presence presence = Presence::optional;
};
template <class Body, class Value, class Rule>
Field(std::string_view, Value Body::*, Rule) -> Field<Body, Value, Rule>;
template <class Body, class Value, class Rule>
Field(std::string_view, Value Body::*, Rule, Presence) -> Field<Body, Value, Rule>;
template <class Body>
Field(std::string_view, bool Body::*) -> Field<Body, bool, YesOrNo>;

// Return the name of a value in a table, or an empty string.
template <class Table, class Value>
constexpr std::string_view name_in(const Table& table, Value value) noexcept {
    for (const auto& [name, candidate] : table)
        if (candidate == value) return name;
    return "";
}

}  // namespace strakes
