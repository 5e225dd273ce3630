// Parses a mixed phase, whose stop rule applies to all parts.
#include "plan/parse_parts.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostParts = 64;

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

}  // namespace

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

}  // namespace strakes
