#include "protocol/report.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "backend/registry.hpp"
#include "system/queries.hpp"

namespace strakes {

void Output::send(const nlohmann::ordered_json& message) {
    using Json = nlohmann::ordered_json;
    // A path may contain any bytes, but a message must be UTF-8.
    const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    const std::lock_guard lock(mutex_);
    std::string_view left = line;
    while (!left.empty() && !broken()) {
        const ssize_t written = ::write(descriptor_, left.data(), left.size());
        if (written >= 0)
            left.remove_prefix(static_cast<std::size_t>(written));
        else if (errno != EINTR)
            broken_.store(true, std::memory_order_relaxed);
    }
}

namespace {

using Json = nlohmann::ordered_json;

Json message_of(std::string_view type) { return {{"type", type}, {"version", 1}}; }

Json abilities_of(const BackendRow& row) {
    Json kinds = Json::array();
    for (const auto& [name, kind] : kKinds)
        if (row.kinds.has(kind)) kinds.push_back(name);
    return {{"kinds", std::move(kinds)},
            {"queues", row.queues},
            {"direct", row.no_direct.empty()},
            {"preallocate", row.no_preallocate.empty()},
            {"gathers", row.gathers},
            {"format", name_in(kFormats, row.format)},
            {"needs_processes", row.needs_processes}};
}

// Returns ascending numbers as ranges, pairs of the first and the last number.
Json ranges_of(const std::vector<std::uint32_t>& numbers) {
    Json ranges = Json::array();
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t end = i + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
        ranges.push_back({numbers[i], numbers[end - 1]});
        i = end;
    }
    return ranges;
}

}  // namespace

void Report::error(const Failure& failure, const Place& place) {
    if (errors_.fetch_add(1) >= kMostErrors) return;
    Json where = {{"host", place.host.empty() ? host_name() : place.host}};
    if (place.rank) where["rank"] = *place.rank;
    if (!failure.path.empty()) where["path"] = failure.path;
    if (!failure.operation.empty()) where["operation"] = failure.operation;
    if (place.phase != nullptr) where["phase"] = phase_name(*place.phase);
    if (failure.offset_bytes) where["offset_bytes"] = *failure.offset_bytes;
    if (!place.key.empty()) where["key"] = place.key;
    Json message = message_of("error");
    message["id"] = id_;
    message["what"] = failure.what;
    message["where"] = std::move(where);
    message["why"] = failure.why;
    if (!failure.error_name.empty()) message["errno"] = failure.error_name;
    message["remedy"] = failure.remedy;
    output_.send(message);
}

void Report::progress(const Running& running) {
    Json message = message_of("progress");
    message["id"] = id_;
    message["phase"] = running.phase;
    message["name"] = running.name;
    message["elapsed_s"] = running.elapsed_s;
    message["bytes"] = running.bytes;
    message["operations"] = running.operations;
    message["ranks_done"] = running.ranks_done;
    output_.send(message);
}

void Report::log(const Phase& phase, std::uint32_t rank, double origin_unix_s, std::uint64_t first,
                 std::span<const LoggedOperation> rows) {
    const auto seconds = [](std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; };
    Json message = message_of("log");
    message["id"] = id_;
    message["phase"] = phase_name(phase);
    message["rank"] = rank;
    message["origin_unix_s"] = origin_unix_s;
    message["columns"] = {"k", "due_s", "begun_s", "ended_s", "errno"};
    Json list = Json::array();
    for (const LoggedOperation& row : rows)
        list.push_back({first++, seconds(row.due), seconds(row.begun), seconds(row.ended),
                        row.error == 0 ? std::string() : errno_name(row.error)});
    message["rows"] = std::move(list);
    output_.send(message);
}

void Report::sample(const Json& message) {
    Json complete = message_of("sample");
    complete["id"] = id_;
    complete.update(message);
    output_.send(complete);
}

void Report::done(PlanStatus status, bool cleaned, const std::vector<std::string>& left) {
    constexpr std::array<std::string_view, 4> kNames{"ok", "failed", "cancelled", "refused"};
    Json message = message_of("done");
    message["id"] = id_;
    message["status"] = kNames.at(static_cast<std::size_t>(status));
    message["cleaned"] = cleaned;
    message["left"] = left;
    output_.send(message);
}

void say_hello(Output& output, const Hello& hello) {
    Json message = message_of("hello");
    message["engine"] = hello.engine;
    message["host"] = host_name();
    message["pid"] = ::getpid();
    message["backends"] = Json::array();
    Json absent = Json::object();
    for (const BackendRow& row : kBackends) {
        const Absence absence = absence_of(row.backend);
        if (absence.why.empty())
            message["backends"].push_back(row.name);
        else
            absent[std::string(row.name)] = {{"why", absence.why}, {"remedy", absence.remedy}};
        message["abilities"][std::string(row.name)] = abilities_of(row);
    }
    message["absent"] = std::move(absent);
    message["kinds"] = Json::array();
    for (const auto& [name, kind] : kKinds) message["kinds"].push_back(name);
    message["clock"] = hello.clock;
    if (hello.together) {
        const Together& together = *hello.together;
        message["mpi"] = together.library;
        message["communicator_size"] = together.size;
        message["launcher_tasks"] = together.tasks;
        message["nodes"] = Json::array();
        for (const Node& node : together.nodes)
            message["nodes"].push_back({{"host", node.host}, {"ranks", node.ranks}, {"pids", node.pids}});
        message["clock_uncertainty_s"] = together.clock_uncertainty_s;
    }
    output.send(message);
}

void say_heartbeat(Output& output, const Heartbeat& heartbeat) {
    Json message = message_of("heartbeat");
    message["id"] = heartbeat.plan_id;
    message["alive"] = ranges_of(heartbeat.alive);
    message["silent"] = heartbeat.silent;
    message["gone"] = heartbeat.gone;
    output.send(message);
}

}  // namespace strakes
