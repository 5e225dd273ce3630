// Strict reading of a request.
#include "protocol/requests.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/object_reader.hpp"
#include "plan/parse.hpp"

namespace strakes {

namespace {

constexpr double kMostSeconds = 31'536'000;  // a year
constexpr std::size_t kMostIdCharacters = 64;
constexpr double kMostPerSecond = 1e15;

std::string parse_id(const ObjectReader& reader) {
    std::string id = reader.string("id");
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    };
    if (id.empty() || id.size() > kMostIdCharacters || id.front() == '.' || !std::ranges::all_of(id, allowed))
        reader.refuse("id", "is not an id", "1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-', not starting with a dot.");
    return id;
}

Impact parse_impact(const nlohmann::json& body) {
    const ObjectReader reader(body, "impact", {"bytes_per_s", "operations_per_s", "share"});
    Impact impact;
    if (reader.has("bytes_per_s")) impact.bytes_per_s = reader.positive_number("bytes_per_s", kMostPerSecond);
    if (reader.has("operations_per_s"))
        impact.operations_per_s = reader.positive_number("operations_per_s", kMostPerSecond);
    if (reader.has("share")) impact.share = reader.positive_number("share", 1);
    return impact;
}

PlanRequest parse_plan_request(const nlohmann::json& message) {
    const ObjectReader reader(message, "",
                              {"type", "version", "id", "directory", "plan", "limit_s", "keep", "prepared", "impact"});
    PlanRequest request;
    request.id = parse_id(reader);
    request.directory = reader.string("directory");
    if (!request.directory.starts_with('/') || request.directory.find('\0') != std::string::npos)
        reader.refuse("directory", "is not an absolute path", "Start it with /.");
    request.limit_s = reader.positive_number("limit_s", kMostSeconds);
    request.keep = reader.boolean_or("keep", false);
    request.prepared = reader.boolean_or("prepared", false);
    if (reader.has("impact")) request.impact = parse_impact(reader.value("impact"));
    request.plan = parse_plan(reader.value("plan"));
    return request;
}

Request parse_message(const nlohmann::json& message) {
    if (!message.is_object()) throw Refusal("the line is not an object", "", "One JSON object a line.");
    const auto type = message.find("type");
    const auto version = message.find("version");
    if (version == message.end() || *version != 1)
        throw Refusal("'version' is missing or not known", "version", "This engine speaks version 1.");
    if (type != message.end() && *type == "plan") return parse_plan_request(message);
    if (type != message.end() && *type == "cancel")
        return CancelRequest{parse_id(ObjectReader(message, "", {"type", "version", "id"}))};
    throw Refusal("'type' is missing or not known", "type", "One of: plan, cancel.");
}

}  // namespace

Request parse_request(std::string_view line) {
    const nlohmann::json message = nlohmann::json::parse(line, nullptr, false);
    if (message.is_discarded()) return RefusedRequest{{}, "the line is not JSON", {}, "One JSON object a line."};
    try {
        Request request = parse_message(message);
        if (auto* plan = std::get_if<PlanRequest>(&request)) plan->line = line;
        return request;
    } catch (const Refusal& refusal) {
        std::string id;
        if (message.is_object() && message.contains("id") && message["id"].is_string())
            id = message["id"].get<std::string>();
        return RefusedRequest{std::move(id), refusal.what(), refusal.key(), refusal.remedy()};
    }
}

}  // namespace strakes
