// The engine's protocol: lines in, lines out.
#include "session/session.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support.hpp"
#include "system/processors.hpp"
#include "workspace/workspace.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

Json cancel_message(const char* id) { return {{"type", "cancel"}, {"version", 1}, {"id", id}}; }

// A plan that takes minutes.
Json endless(const TestDirectory& directory, const Json& more = Json::object()) {
    // Only few files, so that even a busy machine has created all of them before the test ends the plan.
    const Json few = {{"items", 2}};
    const Json seconds = {{"items", 2}, {"stop", {{"rule", "seconds"}, {"seconds", 600}}}};
    return plan_message(directory.path(),
                        plan_of({metadata("create", "file-create", few), metadata("stat", "file-stat", seconds),
                                 metadata("remove", "file-remove", few)}),
                        more);
}

}  // namespace

TEST_CASE("a plan reports one sample per phase and done, and leaves no files") {
    const TestDirectory directory;
    const Answers answers =
        run_plan(directory.path(), 2,
                 {transfer("write", "write"), transfer("read", "read", {{"verify", true}}),
                  metadata("create", "file-create"), metadata("stat", "file-stat"), metadata("remove", "file-remove")});
    CHECK(answers.exit_status == 0);
    CHECK(answers.of_type("sample").size() == 5);
    CHECK(answers.of_type("error").empty());
    CHECK(answers.last("done") == Json{{"type", "done"},
                                       {"version", 1},
                                       {"id", "p"},
                                       {"status", "ok"},
                                       {"cleaned", true},
                                       {"left", Json::array()}});
    CHECK(directory.entries().empty());
    CHECK(fs::exists(directory.path() / ".strakes-marker"));
}

TEST_CASE("a plan that is only checked is refused or accepted, and creates nothing") {
    const TestDirectory directory;
    const Json good = plan_of({metadata("create", "file-create")});
    const Json bad = plan_of({metadata("remove", "file-remove")});
    CHECK(run_session(plan_message(directory.path(), good, {{"check", true}})).exit_status == 0);
    CHECK(run_session(plan_message(directory.path(), bad, {{"check", true}})).exit_status == 2);
    CHECK(run_session(plan_message("/nowhere", good, {{"check", true}})).last("done")["status"] == "ok");
    CHECK(directory.entries().empty());
}

TEST_CASE("a plan continues in a directory that an earlier one kept, and removes all of it at its end") {
    const TestDirectory directory;
    const Json create = plan_of({metadata("create", "file-create")});
    CHECK(run_session(plan_message(directory.path(), create, {{"keep", true}})).exit_status == 0);
    CHECK(fs::exists(directory.path() / "p"));
    CHECK(run_plan(directory.path(), 2, {metadata("make", "dir-create")}).exit_status == 2);
    const Answers answers = run_plan(directory.path(), 2, {metadata("make", "dir-create")}, {{"prepared", true}});
    CHECK(answers.exit_status == 0);
    CHECK(directory.entries().empty());
}

TEST_CASE("the numbers of a sample are consistent") {
    const TestDirectory directory;
    const Answers answers = run_plan(directory.path(), 2,
                                     {transfer("write", "write"), transfer("read", "read", {{"verify", true}}),
                                      transfer("mix", "mixed", {{"read_percent", 50}}), transfer("again", "read"),
                                      metadata("create", "file-create")});
    const Json write = answers.sample("write");
    CHECK(write["version"] == 1);
    CHECK(write["id"] == "p");
    CHECK(write["phase"] == 0);
    CHECK(write["kind"] == "transfer");
    CHECK(write["stopped_by"] == "amount");
    CHECK(write["bytes"] == 2 * 4 * 65536);
    CHECK(write["operations"] == 128);
    CHECK(write["errors"] == 0);
    CHECK(write["bytes_per_s"].get<double>() ==
          doctest::Approx(write["bytes"].get<double>() / write["elapsed_s"].get<double>()));
    CHECK(write["operations_per_s"].get<double>() == doctest::Approx(128 / write["elapsed_s"].get<double>()));
    REQUIRE(write["ranks"].size() == 2);
    CHECK(write["ranks"][1].size() == write["columns"].size());
    CHECK(write["ranks"][1][0] == 1);
    CHECK(write["ranks"][1][3] == 4 * 65536);
    CHECK(calls_in(write["histograms"]["write"]) == 128);
    Json effective = write["effective"];
    const double data_s = effective["data_s"];
    CHECK(data_s > 0);
    CHECK(data_s < 2 * write["elapsed_s"].get<double>());  // the sum over two ranks
    effective.erase("data_s");
    CHECK(effective == Json{{"backend", "posix"},
                            {"queue_depth", 1},
                            {"direct", false},
                            {"transfer_bytes", 4096},
                            {"verified_bytes", 0}});
    CHECK(write["cache"]["file_bytes"] == 2 * 4 * 65536);
    CHECK(write["counters"].contains("cpu_user_s"));
    CHECK(answers.sample("read")["effective"]["verified_bytes"] == 2 * 4 * 65536);
    CHECK(answers.sample("read")["effective"]["data_s"] > 0);
    CHECK(answers.sample("again")["effective"]["data_s"] == 0);
    CHECK(answers.sample("read")["histograms"].contains("read"));
    CHECK(answers.sample("mix")["histograms"].size() == 2);
    const Json create = answers.sample("create");
    CHECK(create["bytes"] == 0);
    CHECK_FALSE(create.contains("cache"));
    CHECK(create["histograms"].contains("file-create"));
}

TEST_CASE("a sample states how far apart its ranks started, if there are several") {
    const TestDirectory directory;
    const Json three = run_plan(directory.path(), 3, {metadata("create", "file-create")}).sample("create");
    double last = 0;
    for (const Json& row : three["ranks"]) last = std::max(last, row[1].get<double>());
    CHECK(three["begun"]["apart_s"].get<double>() == doctest::Approx(last));
    CHECK(three["ranks"][three["begun"]["last_rank"].get<std::size_t>()][1] == last);
    CHECK(three["begun"]["last_host"] == three["host"]);
    CHECK(three["begun"]["clock_uncertainty_s"] == 0);
    CHECK(three["begun"]["crowded"] == (Processors::allowed().count() < 3));
    CHECK(three["nodes"][0]["first_rank"] == 0);
    const Json alone = run_plan(directory.path(), 1, {metadata("create", "file-create")}).sample("create");
    CHECK_FALSE(alone.contains("begun"));
}

TEST_CASE("the same plan and seed make the same choices") {
    const TestDirectory directory;
    std::vector<Json> reads;
    for (int i = 0; i < 2; ++i) {
        const Answers answers =
            run_plan(directory.path(), 2,
                     {transfer("write", "write"), transfer("mix", "mixed", {{"read_percent", 50}, {"verify", true}})});
        reads.push_back(answers.sample("mix")["effective"]["verified_bytes"]);
    }
    CHECK(reads[0] == reads[1]);
}

TEST_CASE("plans run in order, and the exit status is that of the last one") {
    const TestDirectory directory;
    const Json good = plan_of({metadata("create", "file-create")});
    const std::string one = plan_message(directory.path(), good, {{"id", "one"}}).dump();
    const std::string bad =
        plan_message(directory.path(), plan_of({metadata("stat", "file-stat")}), {{"id", "bad"}}).dump();
    CHECK(run_session(std::vector{one, bad}).exit_status == 2);
    const Answers answers = run_session(std::vector{bad, one});
    CHECK(answers.exit_status == 0);
    const auto done = answers.of_type("done");
    REQUIRE(done.size() == 2);
    CHECK(done[0]["status"] == "refused");
    CHECK(done[1]["id"] == "one");
}

TEST_CASE("a refused plan names the key and touches nothing") {
    const TestDirectory directory;
    Json message = plan_message(directory.path(), plan_of({metadata("create", "file-create", {{"count", 3}})}));
    const Answers answers = run_session(message);
    CHECK(answers.exit_status == 2);
    const Json error = answers.last("error");
    CHECK(error["id"] == "p");
    CHECK(error["where"]["key"] == "phases[0].count");
    CHECK_FALSE(error["remedy"].get<std::string>().empty());
    CHECK(answers.last("done")["status"] == "refused");
    CHECK(directory.entries().empty());
}

TEST_CASE("messages that break the contract are refused one by one") {
    const TestDirectory directory;
    const Json good = plan_message(directory.path(), plan_of({metadata("create", "file-create")}));
    const auto with = [&](const char* key, const Json& value) {
        Json message = good;
        message[key] = value;
        return message.dump();
    };
    const auto without = [&](const char* key) {
        Json message = good;
        message.erase(key);
        return message.dump();
    };
    const std::vector<std::pair<std::string, std::string>> cases{
        {"not json", ""},
        {"[1, 2]", ""},
        {with("type", "run"), "type"},
        {with("version", 2), "version"},
        {without("version"), "version"},
        {with("id", "../x"), "id"},
        {with("id", ".hidden"), "id"},
        {with("id", ""), "id"},
        {with("id", std::string(65, 'a')), "id"},
        {with("id", 5), "id"},
        {with("directory", "relative"), "directory"},
        {with("limit_s", 0), "limit_s"},
        {with("limit_s", "60"), "limit_s"},
        {without("limit_s"), "limit_s"},
        {with("keep", "yes"), "keep"},
        {with("colour", "red"), "colour"},
        {without("plan"), "plan"},
    };
    for (const auto& [line, key] : cases) {
        INFO(line);
        const Answers answers = run_session(std::vector{line});
        CHECK(answers.exit_status == 2);
        CHECK(answers.last("done")["status"] == "refused");
        const Json where = answers.last("error")["where"];
        CHECK(where.value("key", "") == key);
    }
    CHECK(directory.entries().empty());
}

TEST_CASE("a line that is too long is refused, with or without its end, and the next one is read") {
    const std::string endless(LineBuffer::kMostCharacters + 1, 'x');
    LineBuffer lines;
    lines.add(endless);
    CHECK_FALSE(lines.next());
    lines.add("the rest of it\nnext\n");
    CHECK(lines.next() == LineBuffer::kTooLong);
    CHECK(lines.next() == "next");
    lines.add(endless);
    CHECK_FALSE(lines.next());
    lines.end();
    CHECK(lines.next() == LineBuffer::kTooLong);
    lines.add(endless + "\n");
    CHECK(lines.next() == LineBuffer::kTooLong);
    CHECK(run_session(std::vector{std::string(LineBuffer::kTooLong)}).exit_status == 2);
}

TEST_CASE("a directory whose name is not UTF-8 is given as bytes in hexadecimal") {
    const TestDirectory above;
    const fs::path place = above.path() / "caf\xe9";
    fs::create_directory(place);
    fs::copy_file(above.path() / kMarker, place / kMarker);
    const auto message = [&](const std::string& digits) {
        Json plan = plan_message(above.path(), plan_of({metadata("create", "file-create")}));
        plan.erase("directory");
        plan["directory_hex"] = digits;
        return plan;
    };
    std::string digits;
    for (const char c : place.string()) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        digits += {kDigits[static_cast<unsigned char>(c) >> 4U], kDigits[static_cast<unsigned char>(c) & 15U]};
    }
    CHECK(run_session(message(digits)).last("done")["status"] == "ok");
    for (const std::string& wrong : {std::string(), std::string("2"), std::string("2g"), digits + "0"})
        CHECK(run_session(message(wrong)).last("error")["where"]["key"] == "directory_hex");
}

TEST_CASE("a plan with keep leaves its files") {
    const TestDirectory directory;
    const Answers answers = run_plan(directory.path(), 1, {transfer("write", "write")}, {{"keep", true}});
    CHECK(answers.last("done")["status"] == "ok");
    CHECK(answers.last("done")["cleaned"] == false);
    CHECK(fs::exists(directory.path() / "p/data.0.data"));
}

TEST_CASE("a cancelled plan ends in order, with a sample of the work done, and is cleaned") {
    const TestDirectory directory;
    const Answers answers = run_session(endless(directory), 2000, cancel_message("p"));
    CHECK(answers.exit_status == 0);
    CHECK(answers.last("done")["status"] == "cancelled");
    CHECK(answers.last("done")["cleaned"] == true);
    const Json stat = answers.sample("stat");
    CHECK(stat["stopped_by"] == "cancel");
    CHECK(stat["operations"] > 0);
    CHECK(answers.of_type("sample").size() == 2);
    CHECK(answers.of_type("error").empty());
    CHECK(directory.entries().empty());
}

TEST_CASE("a cancellation of another plan changes nothing") {
    const TestDirectory directory;
    const Answers answers =
        run_session(std::vector{plan_message(directory.path(), plan_of({metadata("create", "file-create")})).dump(),
                                cancel_message("q").dump()});
    CHECK(answers.last("done")["status"] == "ok");
}

TEST_CASE("a plan in the queue can be cancelled") {
    const TestDirectory directory;
    const Json plan = plan_of({metadata("create", "file-create")});
    const Answers answers = run_session(std::vector{plan_message(directory.path(), plan, {{"id", "a"}}).dump(),
                                                    plan_message(directory.path(), plan, {{"id", "b"}}).dump(),
                                                    cancel_message("b").dump()});
    const auto done = answers.of_type("done");
    REQUIRE(done.size() == 2);
    for (const Json& message : done) CHECK(message["status"] == (message["id"] == "b" ? "cancelled" : "ok"));
    CHECK(answers.of_type("sample").size() == 1);
}

TEST_CASE("a plan over its limit is ended, and the slowest rank is named") {
    const TestDirectory directory;
    const Answers answers = run_session(endless(directory, {{"limit_s", 2}}));
    CHECK(answers.exit_status == 1);
    CHECK(answers.last("done")["status"] == "failed");
    CHECK(answers.last("done")["cleaned"] == true);
    const Json error = answers.last("error");
    CHECK(error["what"].get<std::string>().find("limit") != std::string::npos);
    CHECK(error["where"].contains("rank"));
    CHECK(error["where"]["phase"] == "stat");
    CHECK(answers.sample("stat")["stopped_by"] == "cancel");
    CHECK(directory.entries().empty());
}

TEST_CASE("a long phase reports progress, at the interval that the plan sets") {
    const TestDirectory directory;
    const Json seconds = {{"stop", {{"rule", "seconds"}, {"seconds", 1.3}}}};
    const auto began = std::chrono::steady_clock::now();
    const Answers answers =
        run_plan(directory.path(), 2, {metadata("create", "file-create"), metadata("stat", "file-stat", seconds)});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const auto progress = answers.of_type("progress");
    CHECK(progress.size() >= 1);
    CHECK(static_cast<double>(progress.size()) <= took.count() / 0.5);
    CHECK(progress.back()["name"] == "stat");
    CHECK(progress.back()["operations"] > 0);
    CHECK(progress.back()["ranks_done"] == 0);
    CHECK(answers.sample("stat")["stopped_by"] == "seconds");
    const Json plan = plan_of({metadata("create", "file-create"), metadata("stat", "file-stat", seconds)});
    CHECK(run_session(plan_message(directory.path(), plan, {{"progress_s", 0.1}})).of_type("progress").size() >= 5);
    CHECK(run_session(plan_message(directory.path(), plan, {{"progress_s", 30}})).of_type("progress").empty());
    CHECK(run_session(plan_message(directory.path(), plan, {{"progress_s", 0}})).exit_status == 2);
}

TEST_CASE("a full file system ends the phase with an error that names rank, call and path, and is cleaned") {
    const TestDirectory directory;
    const Mount mount(directory.path(), "size=1m");
    if (!mount.is_there()) return;
    const Answers answers =
        run_plan(directory.path(), 3,
                 {transfer("write", "write", {{"segments", 64}}), transfer("read", "read", {{"segments", 64}})});
    CHECK(answers.exit_status == 1);
    const Json error = answers.of_type("error").front();
    CHECK(error["errno"] == "ENOSPC");
    CHECK(error["where"]["operation"] == "write");
    CHECK(error["where"]["phase"] == "write");
    CHECK(error["where"]["path"].get<std::string>().starts_with("p/data."));
    CHECK(error["where"].contains("offset_bytes"));
    CHECK(error["where"].contains("rank"));
    CHECK_FALSE(error["why"].get<std::string>().empty());
    CHECK_FALSE(error["remedy"].get<std::string>().empty());
    CHECK(answers.of_type("sample").size() == 1);
    CHECK(answers.sample("write")["stopped_by"] == "error");
    CHECK(answers.sample("write")["errors"] >= 1);
    CHECK(answers.last("done")["status"] == "failed");
    CHECK(answers.last("done")["cleaned"] == true);
    CHECK(directory.entries().empty());
}

TEST_CASE("a file system without inodes ends a creation, and is cleaned") {
    const TestDirectory directory;
    const Mount mount(directory.path(), "nr_inodes=100");
    if (!mount.is_there()) return;
    const Answers answers = run_plan(directory.path(), 2,
                                     {metadata("create", "file-create", {{"directory", "shared"}}),
                                      metadata("stat", "file-stat", {{"directory", "shared"}})});
    CHECK(answers.exit_status == 1);
    CHECK(answers.of_type("error").front()["errno"] == "ENOSPC");
    CHECK(answers.sample("create")["stopped_by"] == "error");
    CHECK(answers.last("done")["cleaned"] == true);
    CHECK(directory.entries().empty());
}

TEST_CASE("an error before the timed section ends the phase with an empty sample") {
    const TestDirectory directory;
    const Mount mount(directory.path(), "nr_inodes=8");
    if (!mount.is_there()) return;
    const Answers answers =
        run_plan(directory.path(), 2, {metadata("create", "file-create", {{"depth", 2}, {"branch", 4}})});
    CHECK(answers.last("error")["where"]["operation"] == "mkdir");
    CHECK(answers.sample("create")["operations"] == 0);
    CHECK(answers.sample("create")["stopped_by"] == "error");
    CHECK_FALSE(answers.sample("create").contains("begun"));
    CHECK(answers.last("done")["cleaned"] == true);
}

TEST_CASE("a plan reports why its directory cannot be removed") {
    const TestDirectory directory;
    std::optional<Mount> over;
    std::thread mounting([&] {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        const auto is_empty = [&] {
            std::error_code none_yet;
            return fs::directory_iterator(directory.path() / "p", none_yet) == fs::directory_iterator();
        };
        while (is_empty() && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        over.emplace(directory.path() / "p", "size=1m");
    });
    const Json second = {{"stop", {{"rule", "seconds"}, {"seconds", 1}}}};
    const Answers answers =
        run_plan(directory.path(), 2, {metadata("create", "file-create"), metadata("stat", "file-stat", second)});
    mounting.join();
    if (!over->is_there()) return;
    CHECK(answers.exit_status == 1);
    REQUIRE(answers.of_type("error").size() == 1);
    CHECK(answers.last("error")["errno"] == "EBUSY");
    CHECK(answers.last("error")["where"]["operation"] == "rmdir");
    CHECK(answers.last("error")["where"]["path"] == "p");
    CHECK(answers.last("done")["status"] == "failed");
    CHECK(answers.last("done")["left"] == Json::array({"p"}));
}

TEST_CASE("no more than 16 errors are sent, and the sample counts all") {
    const TestDirectory directory;
    const Mount mount(directory.path(), "size=1m");
    if (!mount.is_there()) return;
    const Json preallocated = {{"preallocate", true}, {"block_bytes", 1U << 20U}};
    const Answers answers = run_plan(directory.path(), 24, {transfer("write", "write", preallocated)});
    CHECK(answers.of_type("error").size() == 16);
    CHECK(answers.sample("write")["errors"] >= 23);
}

TEST_CASE("buffers that do not fit into memory are refused") {
    const TestDirectory directory;
    const std::uint64_t large = std::uint64_t{1} << 44U;
    const Json probe = {{"kind", "probe"}, {"name", "p"},       {"operation", "write-fsync"},
                        {"seconds", 1},    {"rate_per_s", 1.0}, {"file_bytes", 1U << 30U}};
    const Json write = transfer("write", "write", {{"transfer_bytes", large}, {"block_bytes", large}, {"segments", 1}});
    for (const auto& [phase, ranks] : {std::pair{write, 2}, {probe, 4096}}) {
        const Answers answers = run_plan(directory.path(), ranks, {phase});
        CHECK(answers.last("done")["status"] == "refused");
        CHECK(answers.last("error")["where"]["key"] == "team.ranks");
    }
}
