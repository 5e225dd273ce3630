// Keys that several kinds have.
#include "plan/parse_parts.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace strakes {

std::string parse_name(const ObjectReader& reader, std::string_view key) {
    std::string name = reader.string(key);
    const auto small = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    const bool good = !name.empty() && name.size() <= 32 && small(name.front()) &&
                      std::ranges::all_of(name, [&](char c) { return small(c) || c == '-'; });
    if (!good) reader.refuse(key, "is not a name", "1 to 32 of a-z, 0-9 and -, not starting with -.");
    return name;
}

Stop parse_stop(const ObjectReader& phase) {
    if (!phase.has("stop")) return {};
    const ObjectReader reader(phase.value("stop"), phase.path_of("stop"), {"rule", "seconds"});
    Stop stop;
    stop.rule = reader.choice("rule", kStopRules);
    if (stop.rule != StopRule::amount)
        stop.seconds = reader.positive_number("seconds", kDay);
    else if (reader.has("seconds"))
        reader.refuse("seconds", "contradicts the rule 'amount'",
                      "Leave it out, or use the rule stonewall or seconds.");
    return stop;
}

// Names and values as MPI takes them everywhere: it cuts or refuses longer ones.
Hints parse_hints(const ObjectReader& phase) {
    constexpr std::size_t kMost = 64, kLongestName = 35, kLongestValue = 255;
    const nlohmann::json& object = phase.value("hints");
    if (!object.is_object() || object.size() > kMost)
        phase.refuse("hints", "is not an object of at most 64 hints", "Write it as {\"name\": \"value\", ...}.");
    const auto visible = [](char c) { return c >= '!' && c <= '~'; };
    Hints hints;
    for (const auto& [name, value] : object.items()) {
        if (name.empty() || name.size() > kLongestName || !std::ranges::all_of(name, visible))
            phase.refuse("hints", "has a name that is none", "1 to 35 visible characters of ASCII, no blanks.");
        const bool good = value.is_string() && !value.get_ref<const std::string&>().empty() &&
                          value.get_ref<const std::string&>().size() <= kLongestValue &&
                          std::ranges::all_of(value.get_ref<const std::string&>(), visible);
        if (!good)
            phase.refuse("hints." + name, "is not a hint's value",
                         "Text of 1 to 255 visible characters of ASCII, no blanks; numbers in quotes, too.");
        hints.emplace_back(name, value.get<std::string>());
    }
    return hints;
}

}  // namespace strakes
