// Keys that several kinds have.
#include "plan/parse_parts.hpp"

#include <algorithm>

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

}  // namespace strakes
