// Kinds of phases, their ends and the cached data before them, with their names in plans.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace strakes {

// Pair the values of an enumeration, in order, with their names.
template <class Enum, class... Name>
constexpr auto names_of(Name... name) {
    std::uint8_t value = 0;
    return std::array<std::pair<std::string_view, Enum>, sizeof...(Name)>{{{name, static_cast<Enum>(value++)}...}};
}

template <class Table, class Value>
constexpr std::string_view name_in(const Table& table, Value value) noexcept {
    for (const auto& [name, candidate] : table)
        if (candidate == value) return name;
    return "";
}

enum class Kind : std::uint8_t { transfer, metadata, stream, small_files, probe, stage, training, mixed };
inline constexpr auto kKinds =
    names_of<Kind>("transfer", "metadata", "stream", "small-files", "probe", "stage", "training", "mixed");

class KindSet {
  public:
    constexpr KindSet(std::initializer_list<Kind> kinds) noexcept {
        for (const Kind kind : kinds) bits_ |= 1U << static_cast<unsigned>(kind);
    }
    [[nodiscard]] constexpr bool has(Kind kind) const noexcept {
        return (bits_ >> static_cast<unsigned>(kind) & 1U) != 0;
    }

  private:
    unsigned bits_ = 0;
};

enum class Cache : std::uint8_t { as_is, drop, drop_system };
inline constexpr auto kCaches = names_of<Cache>("as-is", "drop", "drop-system");

enum class StopRule : std::uint8_t { amount, stonewall, seconds, wear_out };
inline constexpr auto kStopRules = names_of<StopRule>("amount", "stonewall", "seconds", "wear-out");

struct Stop {
    StopRule rule = StopRule::amount;
    double seconds = 0;
};

// Limits on the load that a plan puts on the file system, for all ranks together.
struct Impact {
    double bytes_per_s = 0;       // bytes per second; 0: no limit
    double operations_per_s = 0;  // operations per second; 0: no limit
    double share = 1;             // highest fraction of the time that a rank keeps the file system busy

    [[nodiscard]] bool limits() const noexcept { return bytes_per_s > 0 || operations_per_s > 0 || share < 1; }
};

inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50U;
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 30U;
inline constexpr std::uint64_t kMostRanks = 65536;
inline constexpr std::uint64_t kMostDepth = 4096;
inline constexpr std::uint64_t kMostAttributeBytes = 65536;  // maximum size of an attribute's value (XATTR_SIZE_MAX)
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
struct Name {};     // the name of a phase or of a set of files
struct YesOrNo {};  // true or false
struct Form {};     // a value that an overload of read_form() parses

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

}  // namespace strakes
