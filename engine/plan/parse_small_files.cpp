// The form of a small-files phase.
#include <nlohmann/json.hpp>

#include "plan/parse_parts.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostFlow = 256;
constexpr std::uint64_t kMostItem = std::uint64_t{1} << 40U;

FlowOperation parse_flow_operation(const nlohmann::json& body, const std::string& path) {
    const ObjectReader reader(body, path, {"op", "bytes", "unit_bytes"});
    return {.call = reader.choice("op", kFlowCalls),
            .bytes = reader.integer_or("bytes", 0, kMostCount, 0),
            .unit_bytes = reader.integer_or("unit_bytes", 0, kMostCount, 0)};
}

std::vector<FlowOperation> parse_flow(const ObjectReader& phase) {
    std::vector<FlowOperation> flow;
    if (!phase.has("flow")) return flow;
    const nlohmann::json& list = phase.value("flow");
    if (!list.is_array() || list.size() > kMostFlow)
        phase.refuse("flow", "is not a list of at most 256 operations", "Write it as [{\"op\": ...}, ...].");
    for (std::size_t i = 0; i < list.size(); ++i)
        flow.push_back(parse_flow_operation(list[i], phase.path_of("flow") + "[" + std::to_string(i) + "]"));
    return flow;
}

}  // namespace

SmallFilesPhase parse_small_files(const nlohmann::json& body, const std::string& path) {
    const ObjectReader reader(
        body, path,
        {"kind", "name", "mode", "backend", "files", "files_per_rank", "subdirectories", "size_low_bytes",
         "size_high_bytes", "read_unit_bytes", "write_unit_bytes", "transactions", "read_percent", "create_percent",
         "first_item", "verify", "flow", "stop"});
    SmallFilesPhase phase;
    phase.name = parse_name(reader, "name");
    phase.mode = reader.choice("mode", kSmallFilesModes);
    phase.backend = reader.choice_or("backend", kSmallFilesBackends, phase.backend);
    if (reader.has("files")) phase.files = parse_name(reader, "files");
    phase.files_per_rank = reader.integer_or("files_per_rank", 0, kMostCount, 0);
    phase.subdirectories = reader.integer_or("subdirectories", 0, 65536, 0);
    phase.size_low_bytes = reader.integer("size_low_bytes", 0, kMostCount);
    phase.size_high_bytes = reader.integer("size_high_bytes", 0, kMostCount);
    phase.read_unit_bytes = reader.integer_or("read_unit_bytes", 1, kMostCount, phase.read_unit_bytes);
    phase.write_unit_bytes = reader.integer_or("write_unit_bytes", 1, kMostCount, phase.write_unit_bytes);
    phase.transactions = reader.integer_or("transactions", 0, kMostCount, 0);
    phase.read_percent = static_cast<std::uint32_t>(reader.integer_or("read_percent", 0, 100, phase.read_percent));
    phase.create_percent =
        static_cast<std::uint32_t>(reader.integer_or("create_percent", 0, 100, phase.create_percent));
    phase.first_item = reader.integer_or("first_item", 0, kMostItem, 0);
    phase.verify = reader.boolean_or("verify", phase.verify);
    phase.flow = parse_flow(reader);
    phase.stop = parse_stop(reader);
    return phase;
}

}  // namespace strakes
