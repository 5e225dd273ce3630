// Parses names, lists and objects among the keys of a phase.
#include "plan/parse_parts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace strakes {

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
        hints.emplace_back(name, value.get<std::string>());
    }
}

// Read a part of a file name.
void read_form(const ObjectReader& phase, std::string_view key, std::string& name_part) {
    constexpr std::size_t kLongest = 64;
    name_part = phase.string(key);
    const auto fits = [](char c) { return c >= '!' && c <= '~' && c != '/'; };
    if (name_part.size() > kLongest || !std::ranges::all_of(name_part, fits))
        phase.refuse(key, "is not a part of a file's name", "0 to 64 visible characters of ASCII, no blanks and no /.");
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

}  // namespace strakes
