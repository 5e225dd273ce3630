// Stages: form.
#include "plan/parse_parts.hpp"

namespace strakes {

StagePhase parse_stage(const nlohmann::json& body, const std::string& path) {
    const ObjectReader reader(
        body, path,
        {"kind", "name", "backend", "files", "transfer_bytes", "readers_per_node", "broadcast", "cache", "verify"});
    StagePhase phase;
    phase.name = parse_name(reader, "name");
    phase.backend = reader.choice_or("backend", kSmallFilesBackends, phase.backend);
    if (reader.has("files")) phase.files = parse_name(reader, "files");
    phase.transfer_bytes = reader.integer("transfer_bytes", 1, kMostBytes);
    phase.readers_per_node = static_cast<std::uint32_t>(reader.integer_or("readers_per_node", 0, kMostRanks, 0));
    phase.broadcast = reader.boolean_or("broadcast", phase.broadcast);
    phase.cache = reader.choice_or("cache", kCaches, phase.cache);
    phase.verify = reader.boolean_or("verify", phase.verify);
    return phase;
}

}  // namespace strakes
