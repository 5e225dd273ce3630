// Probes: form.
#include "plan/parse_parts.hpp"

namespace strakes {

ProbePhase parse_probe(const nlohmann::json& body, const std::string& path) {
    constexpr double kMostRate = 1e6;
    const ObjectReader reader(
        body, path, {"kind", "name", "operation", "backend", "files", "rate_per_s", "seconds", "file_bytes", "log"});
    ProbePhase phase;
    phase.name = parse_name(reader, "name");
    phase.operation = reader.choice("operation", kProbeOperations);
    phase.backend = reader.choice_or("backend", kProbeBackends, phase.backend);
    if (reader.has("files")) phase.files = parse_name(reader, "files");
    phase.rate_per_s = reader.positive_number("rate_per_s", kMostRate);
    phase.seconds = reader.positive_number("seconds", kDay);
    phase.file_bytes = reader.integer_or("file_bytes", 0, kMostCount, 0);
    phase.log = reader.boolean_or("log", phase.log);
    return phase;
}

}  // namespace strakes
