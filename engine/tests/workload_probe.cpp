// Probes: every scheduled operation is done, late or not, and a failed one is reported without ending the probe. Mixed
// phases: the parts run concurrently, each as it would alone, and are reported separately.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "support.hpp"
#include "workload/operation_log.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

Json probe(std::string_view name, std::string_view operation, const Json& more = Json::object()) {
    Json phase = {{"kind", "probe"},   {"name", name},   {"operation", operation},
                  {"rate_per_s", 200}, {"seconds", 0.1}, {"files", name}};
    phase.update(more);
    return phase;
}

}  // namespace

TEST_CASE("every scheduled operation is done once, and the log has all of them") {
    const TestDirectory directory;
    const Answers answers =
        run_plan(directory.path(), 3,
                 {probe("creations", "file-create", {{"log", true}, {"file_bytes", 10}}), probe("lookups", "file-stat"),
                  probe("writes", "write-fsync", {{"file_bytes", 4096}, {"rate_per_s", 12.5}, {"seconds", 0.4}})},
                 {{"keep", true}});
    CHECK(answers.last("done").at("status") == "ok");
    const Json sample = answers.sample("creations");
    CHECK(sample.at("operations") == 60);
    CHECK(sample.at("bytes") == 600);
    CHECK(sample.at("stopped_by") == "amount");
    CHECK(sample.at("kind") == "probe");
    CHECK(calls_in(sample.at("histograms").at("file-create")) == 60);
    CHECK(calls_in(sample.at("histograms").at("lag")) == 60);
    CHECK(answers.sample("lookups").at("operations") == 60);
    CHECK(answers.sample("writes").at("bytes") == 3 * 5 * 4096);
    for (int rank = 0; rank < 3; ++rank) {
        const fs::path place = directory.path() / "p" / ("creations." + std::to_string(rank) + ".probe");
        CHECK(std::distance(fs::directory_iterator(place), fs::directory_iterator()) == 20);
        CHECK(fs::file_size(directory.path() / "p" / ("writes." + std::to_string(rank) + ".probe") / "data") ==
              std::uint64_t{5} * 4096);
    }
    std::set<std::pair<int, int>> seen;
    for (const Json& message : answers.of_type("log")) {
        CHECK(message.at("phase") == "creations");
        for (const Json& row : message.at("rows")) {
            INFO(row.dump());
            CHECK(seen.emplace(message.at("rank").get<int>(), row[0].get<int>()).second);
            const double due = row[1].get<double>();
            CHECK(due == doctest::Approx(row[0].get<int>() * 0.005 + message.at("rank").get<int>() * 0.005 / 3));
            CHECK(due <= row[2].get<double>());
            CHECK(row[2].get<double>() <= row[3].get<double>());
            CHECK(row[4] == "");
        }
    }
    CHECK(seen.size() == 60);
}

TEST_CASE("a probe can write different data to every file") {
    const TestDirectory directory;
    const Answers answers =
        run_plan(directory.path(), 2, {probe("kept", "file-fsync", {{"file_bytes", 4096}})}, {{"keep", true}});
    CHECK(answers.last("done").at("status") == "ok");
    CHECK(answers.sample("kept").at("bytes") == 40 * 4096);
    std::set<std::string> contents;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory.path() / "p")) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        contents.emplace(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    CHECK(contents.size() == 40);
    for (const std::string& bytes : contents) CHECK(bytes.size() == 4096);
}

TEST_CASE("a probe can remove its files, and read data that are not in the page cache") {
    const TestDirectory directory;
    const Answers answers = run_plan(
        directory.path(), 2,
        {probe("cycles", "file-cycle", {{"file_bytes", 4096}}), probe("reads", "file-read", {{"file_bytes", 4096}})},
        {{"keep", true}});
    CHECK(answers.last("done").at("status") == "ok");
    for (const char* name : {"cycles", "reads"}) {
        CHECK(answers.sample(name).at("operations") == 40);
        CHECK(answers.sample(name).at("bytes") == 40 * 4096);
    }
    CHECK(fs::is_empty(directory.path() / "p" / "cycles.0.probe"));
    CHECK(fs::file_size(directory.path() / "p" / "reads.1.probe" / "data") == std::uint64_t{256} * 4096);
}

TEST_CASE("late operations are measured from the time they were scheduled") {
    // No system does a million operations per second, so the last operation is late by about the overrun of the phase.
    const TestDirectory directory;
    const Answers answers =
        run_plan(directory.path(), 1, {probe("creations", "file-create", {{"rate_per_s", 1e6}, {"seconds", 2e-3}})});
    const Json sample = answers.sample("creations");
    CHECK(sample.at("operations") == 2000);
    const double late = sample.at("elapsed_s").get<double>() - 2e-3;
    CHECK(late > 0);
    CHECK(sample.at("ranks")[0][6].get<double>() > 0.5 * late);
}

TEST_CASE("a full file system fails operations, the log has each with its reason, and the probe continues") {
    const TestDirectory directory;
    const fs::path place = directory.path() / "full";
    fs::create_directory(place);
    const Mount mount(place, "size=64k");
    if (!mount.is_there()) return;
    const auto plan = plan_of({probe("writes", "write-fsync", {{"file_bytes", 8192}, {"log", true}})}, 1);
    const Answers answers = run_session(plan_message(place, plan));
    CHECK(answers.last("done").at("status") == "ok");
    const Json sample = answers.sample("writes");
    const auto good = sample.at("operations").get<int>();
    CHECK(good > 0);
    CHECK(good < 20);
    CHECK(sample.at("errors") == 20 - good);
    int failed = 0;
    for (const Json& message : answers.of_type("log"))
        for (const Json& row : message.at("rows")) failed += row[4] == "ENOSPC" ? 1 : 0;
    CHECK(failed == 20 - good);
}

TEST_CASE("a probe without any successful operation has failed, and a cancelled probe ends at once") {
    const TestDirectory directory;
    const fs::path place = directory.path() / "full";
    fs::create_directory(place);
    const Mount mount(place, "size=64k");
    if (!mount.is_there()) return;
    const auto plan = plan_of({probe("writes", "write-fsync", {{"file_bytes", 1000000}})}, 1);
    const Answers answers = run_session(plan_message(place, plan));
    CHECK(answers.last("done").at("status") == "failed");
    CHECK(answers.last("error").at("errno") == "ENOSPC");
    const auto slow = plan_of({probe("slow", "file-create", {{"rate_per_s", 0.01}, {"seconds", 80000}})}, 2);
    const Answers ended =
        run_session(plan_message(directory.path(), slow), 100, {{"type", "cancel"}, {"version", 1}, {"id", "p"}});
    CHECK(ended.last("done").at("status") == "cancelled");
    CHECK(ended.last("done").at("cleaned") == true);
}

TEST_CASE("the pieces taken from a log are the whole log") {
    OperationLog log;
    log.clear(100);
    std::vector<std::uint64_t> taken;
    const auto take = [&] {
        log.take(7, [&](std::size_t first, std::uint64_t, auto rows) {
            CHECK(first == taken.size());
            CHECK(rows.size() <= 7);
            for (const LoggedOperation& row : rows) taken.push_back(row.due);
        });
    };
    for (std::uint64_t due = 0; due < 100; ++due) {
        log.add({.due = due});
        if (due % 13 == 0) take();
    }
    take();
    CHECK(taken.size() == 100);
    for (std::uint64_t i = 0; i < taken.size(); ++i) CHECK(taken[i] == i);
}

namespace {

Json part(int ranks, const Json& phase) { return {{"ranks", ranks}, {"phase", phase}}; }

Json mixed(const std::vector<Json>& parts, const Json& more = Json::object()) {
    Json phase = {{"kind", "mixed"}, {"name", "both"}, {"parts", parts}};
    phase.update(more);
    return phase;
}

Json stats(std::string_view name, const Json& more = Json::object()) {
    Json phase = {
        {"kind", "probe"}, {"name", name}, {"operation", "file-stat"}, {"rate_per_s", 1000}, {"seconds", 0.05}};
    phase.update(more);
    return phase;
}

// One column of all ranks of a part.
std::vector<double> column(const Json& part, std::size_t which) {
    std::vector<double> values;
    for (const Json& row : part.at("ranks")) values.push_back(row.at(which));
    return values;
}

}  // namespace

TEST_CASE("parts are reported separately, each with its ranks, amounts, rates and histograms") {
    const TestDirectory directory;
    const Json shared = {{"layout", "shared-file"}};
    const Answers answers = run_plan(directory.path(), 6,
                                     {mixed({part(3, transfer("dump", "write", shared)),
                                             part(2, metadata("make", "file-create")), part(1, stats("watch"))})});
    CHECK(answers.last("done").at("status") == "ok");
    const Json sample = answers.sample("both");
    CHECK(sample.at("kind") == "mixed");
    CHECK(sample.at("ranks").size() == 6);
    CHECK_FALSE(sample.contains("histograms"));
    const Json& parts = sample.at("parts");
    REQUIRE(parts.size() == 3);
    const Json& dump = parts.at(0);
    CHECK(dump.at("name") == "dump");
    CHECK(dump.at("kind") == "transfer");
    CHECK(column(dump, 0) == std::vector<double>{0, 1, 2});
    CHECK(dump.at("bytes") == 3 * 4 * 65536);
    CHECK(dump.at("histograms").contains("write"));
    CHECK(dump.at("bytes_per_s").get<double>() ==
          doctest::Approx(dump.at("bytes").get<double>() / dump.at("elapsed_s").get<double>()));
    const Json& make = parts.at(1);
    CHECK(column(make, 0) == std::vector<double>{3, 4});
    CHECK(make.at("bytes") == 0);
    CHECK(make.at("histograms").contains("file-create"));
    const Json& watch = parts.at(2);
    CHECK(watch.at("histograms").contains("lag"));
    CHECK(watch.at("operations") == 50);
    CHECK(sample.at("operations") == dump.at("operations").get<int>() + make.at("operations").get<int>() + 50);
    CHECK(sample.at("bytes") == dump.at("bytes"));
}

TEST_CASE("all parts run at the same time") {
    const TestDirectory directory;
    const Answers answers = run_plan(directory.path(), 2,
                                     {mixed({part(1, stats("one", {{"seconds", 0.2}})),
                                             part(1, stats("two", {{"files", "p2"}, {"seconds", 0.2}}))})});
    const Json parts = answers.sample("both").at("parts");
    // Each part starts before the other part ends.
    for (const auto& [mine, other] : {std::pair{0, 1}, std::pair{1, 0}})
        CHECK(column(parts.at(mine), 1).front() < column(parts.at(other), 2).front());
}

TEST_CASE("later phases of all ranks find and verify the files of the parts") {
    const TestDirectory directory;
    for (const std::string layout : {"shared-file", "file-per-process"}) {
        const Json as = {{"layout", layout}};
        Json read = as;
        read["verify"] = true;
        const Answers answers =
            run_plan(directory.path(), 5,
                     {mixed({part(2, metadata("make", "file-create", {{"file_bytes", 100}, {"directory", "shared"}})),
                             part(3, transfer("dump", "write", as))}),
                      transfer("read", "read", read),
                      metadata("look", "file-read", {{"file_bytes", 100}, {"directory", "shared"}}),
                      metadata("stat", "file-stat", {{"file_bytes", 100}, {"directory", "shared"}, {"share", "all"}})});
        CHECK(answers.last("done").at("status") == "ok");
        CHECK(answers.sample("read").at("effective").at("verified_bytes") == 3 * 4 * 65536);
        // Only the ranks that created files can read or stat files.
        const auto made = answers.sample("both").at("parts").at(0).at("operations").get<std::uint64_t>();
        CHECK(answers.sample("look").at("operations") == made);
        CHECK(answers.sample("stat").at("operations") == 5 * made);
    }
}

TEST_CASE("a common stop ends all parts together; without one each part ends by its own stop") {
    const TestDirectory directory;
    const Json stat = metadata("stat", "file-stat"), read = transfer("read", "read", {{"verify", true}});
    const auto run = [&](const Json& phase) {
        return run_plan(directory.path(), 2, {metadata("create", "file-create"), transfer("write", "write"), phase});
    };
    const Answers together =
        run(mixed({part(1, stat), part(1, read)}, {{"stop", {{"rule", "seconds"}, {"seconds", 0.2}}}}));
    const Json parts = together.sample("both").at("parts");
    for (const Json& one : parts) CHECK(one.at("stopped_by") == "seconds");
    Json endless = stat;
    endless["stop"] = {{"rule", "seconds"}, {"seconds", 0.2}};
    const Json apart = run(mixed({part(1, endless), part(1, read)})).sample("both");
    CHECK(apart.at("parts").at(0).at("stopped_by") == "seconds");
    CHECK(apart.at("parts").at(1).at("stopped_by") == "amount");
}

TEST_CASE("a failure in one part ends all parts, and the error names the part") {
    const TestDirectory directory;
    fs::create_directory(directory.path() / "small");
    const Mount mount(directory.path() / "small", "size=1m");
    if (!mount.is_there()) return;
    const Answers answers = run_plan(directory.path() / "small", 2,
                                     {mixed({part(1, transfer("dump", "write", {{"segments", 64}})),
                                             part(1, stats("watch", {{"seconds", 60}, {"rate_per_s", 10}}))})});
    CHECK(answers.last("done").at("status") == "failed");
    CHECK(answers.last("error").at("errno") == "ENOSPC");
    CHECK(answers.last("error").at("where").at("phase") == "dump");
    CHECK(answers.last("error").at("where").at("rank") == 0);
    const Json parts = answers.sample("both").at("parts");
    CHECK(parts.at(0).at("stopped_by") == "error");
    CHECK(parts.at(1).at("errors") == 0);
}

TEST_CASE("the log of a probe in a part has the part's rank and name") {
    const TestDirectory directory;
    const Answers answers =
        run_plan(directory.path(), 2,
                 {mixed({part(1, metadata("make", "file-create")), part(1, stats("watch", {{"log", true}}))})});
    std::size_t rows = 0;
    for (const Json& log : answers.of_type("log")) {
        CHECK(log.at("phase") == "watch");
        CHECK(log.at("rank") == 1);
        rows += log.at("rows").size();
    }
    CHECK(rows == 50);
}

TEST_CASE("phases after a mixed one keep their numbers") {
    const TestDirectory directory;
    const Answers answers =
        run_plan(directory.path(), 2,
                 {mixed({part(1, transfer("dump", "write")), part(1, metadata("make", "file-create"))}),
                  metadata("next", "dir-create")});
    CHECK(answers.sample("both").at("phase") == 0);
    CHECK(answers.sample("next").at("phase") == 1);
}
