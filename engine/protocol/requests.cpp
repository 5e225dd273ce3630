#include "protocol/requests.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "plan/object_reader.hpp"
#include "plan/parse.hpp"
#include "plan/plan.hpp"

namespace strakes {

namespace {

constexpr double kMostSeconds = 31'536'000;  // Maximum of a time limit: a year.
constexpr double kMostProgressS = 60;
constexpr std::size_t kMostIdCharacters = 64;
constexpr std::size_t kMostDirectories = 1024;
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

// Hashes directory and id with FNV-1a (Fowler, Noll, Vo 1991). The directory identifies the run, and the id a
// measurement within the run, so no two measurements write the same data.
std::uint64_t salt_of(const PlanRequest& request) {
    std::uint64_t hash = 14695981039346656037U;
    for (const char byte : request.directory + "/" + request.id)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
    return hash;
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

// Decodes hexadecimal digits: file names need not be UTF-8, which JSON strings must be.
std::string bytes_of(const ObjectReader& reader, std::string_view key) {
    const std::string digits = reader.string(key);
    std::string bytes(digits.size() / 2, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        unsigned value = 0;
        const char* pair = digits.data() + 2 * i;
        const auto [end, error] = std::from_chars(pair, pair + 2, value, 16);
        if (error != std::errc{} || end != pair + 2) bytes.clear();
        if (!bytes.empty()) bytes[i] = static_cast<char>(value);
    }
    if (bytes.empty() || digits.size() % 2 != 0) reader.refuse(key, "is not bytes", "Give two digits for each byte.");
    return bytes;
}

std::string directory_of(const ObjectReader& reader) {
    std::string directory =
        reader.has("directory_hex") ? bytes_of(reader, "directory_hex") : reader.string("directory");
    if (!directory.starts_with('/') || directory.find('\0') != std::string::npos)
        reader.refuse("directory", "is not an absolute path", "Start it with /.");
    return directory;
}

Identity identity_of(const ObjectReader& reader) {
    return {.inode = reader.has("inode") ? reader.integer("inode", 0, UINT64_MAX) : 0,
            .device = reader.has("device") ? reader.integer("device", 1, UINT64_MAX) : 0};
}

void parse_beside(const ObjectReader& reader, PlanRequest& request) {
    const nlohmann::json& list = reader.value("beside");
    if (!list.is_array() || list.empty() || list.size() >= kMostDirectories)
        reader.refuse("beside", "is not a list of directories",
                      "1 to " + std::to_string(kMostDirectories - 1) + " of them.");
    for (std::size_t i = 0; i < list.size(); ++i) {
        const ObjectReader one(list[i], "beside[" + std::to_string(i) + "]",
                               {"directory", "directory_hex", "inode", "device"});
        request.beside.push_back(directory_of(one));
        request.identities.push_back(identity_of(one));
    }
    if (request.prepared) reader.refuse("prepared", "needs a single directory", "Leave out beside, or prepared.");
    const std::string against = against_several(request.plan, static_cast<std::uint32_t>(request.directories().size()));
    if (!against.empty())
        reader.refuse("beside", "cannot be used with this plan: " + against,
                      "Give one directory, or a plan in which each rank works on files, or in trees, of its own.");
}

PlanRequest parse_plan_request(const nlohmann::json& message) {
    const ObjectReader reader(message, "",
                              {"type", "version", "id", "directory", "directory_hex", "inode", "device", "beside",
                               "plan", "limit_s", "keep", "prepared", "check", "progress_s", "impact"});
    PlanRequest request;
    request.id = parse_id(reader);
    request.directory = directory_of(reader);
    request.identities = {identity_of(reader)};
    request.limit_s = reader.positive_number("limit_s", kMostSeconds);
    request.keep = reader.boolean_or("keep", false);
    request.prepared = reader.boolean_or("prepared", false);
    request.check = reader.boolean_or("check", false);
    if (reader.has("progress_s")) request.progress_s = reader.positive_number("progress_s", kMostProgressS);
    if (reader.has("impact")) request.impact = parse_impact(reader.value("impact"));
    request.plan = parse_plan(reader.value("plan"));
    if (reader.has("beside")) parse_beside(reader, request);
    request.plan.salt = salt_of(request);
    return request;
}

Request parse_message(const nlohmann::json& message) {
    if (!message.is_object()) throw Refusal("the line is not an object", "", "Send one JSON object per line.");
    const auto type = message.find("type");
    const auto version = message.find("version");
    if (version == message.end() || *version != 1)
        throw Refusal("'version' is missing or not known", "version", "This engine knows version 1.");
    if (type != message.end() && *type == "plan") return parse_plan_request(message);
    if (type != message.end() && *type == "cancel")
        return CancelRequest{parse_id(ObjectReader(message, "", {"type", "version", "id"}))};
    throw Refusal("'type' is missing or not known", "type", "One of: plan, cancel.");
}

}  // namespace

std::vector<std::string> PlanRequest::directories() const {
    std::vector<std::string> all{directory};
    all.insert(all.end(), beside.begin(), beside.end());
    return all;
}

Request parse_followed(std::string_view line) {
    const nlohmann::json message = nlohmann::json::parse(line, nullptr, false);
    if (message.is_discarded()) return RefusedRequest{{}, "the line is not JSON", {}, "Send one JSON object per line."};
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

Request parse_request(std::string_view line) {
    Request request = parse_followed(line);
    try {
        if (const auto* plan = std::get_if<PlanRequest>(&request)) check_here(plan->plan);
        return request;
    } catch (const Refusal& refusal) {
        return RefusedRequest{std::get<PlanRequest>(request).id, refusal.what(), refusal.key(), refusal.remedy(),
                              kNodeLacks};
    }
}

}  // namespace strakes
