// Mixed phases: the parts run concurrently, each as it would alone, and are reported separately.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

Json part(int ranks, const Json& phase) { return {{"ranks", ranks}, {"phase", phase}}; }

Json mixed(const std::vector<Json>& parts, const Json& more = Json::object()) {
    Json phase = {{"kind", "mixed"}, {"name", "both"}, {"parts", parts}};
    phase.update(more);
    return phase;
}

Json probe(std::string_view name, const Json& more = Json::object()) {
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
    const Answers answers = run_session(plan_message(
        directory.path(), plan_of({mixed({part(3, transfer("dump", "write", shared)),
                                          part(2, metadata("make", "file-create")), part(1, probe("watch"))})},
                                  6)));
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
    const Answers answers = run_session(
        plan_message(directory.path(), plan_of({mixed({part(1, probe("one", {{"seconds", 0.2}})),
                                                       part(1, probe("two", {{"files", "p2"}, {"seconds", 0.2}}))})})));
    const Json parts = answers.sample("both").at("parts");
    // Each starts before the other one ends.
    for (const auto& [mine, other] : {std::pair{0, 1}, std::pair{1, 0}})
        CHECK(column(parts.at(mine), 1).front() < column(parts.at(other), 2).front());
}

TEST_CASE("later phases of all ranks find and verify the files of the parts") {
    const TestDirectory directory;
    for (const std::string layout : {"shared-file", "file-per-process"}) {
        const Json as = {{"layout", layout}};
        Json read = as;
        read["verify"] = true;
        const Answers answers = run_session(plan_message(
            directory.path(),
            plan_of({mixed({part(2, metadata("make", "file-create", {{"file_bytes", 100}, {"directory", "shared"}})),
                            part(3, transfer("dump", "write", as))}),
                     transfer("read", "read", read),
                     metadata("look", "file-read", {{"file_bytes", 100}, {"directory", "shared"}}),
                     metadata("stat", "file-stat", {{"file_bytes", 100}, {"directory", "shared"}, {"share", "all"}})},
                    5)));
        CHECK(answers.last("done").at("status") == "ok");
        CHECK(answers.sample("read").at("effective").at("verified_bytes") == 3 * 4 * 65536);
        // Only ranks that created files have any.
        const auto made = answers.sample("both").at("parts").at(0).at("operations").get<std::uint64_t>();
        CHECK(answers.sample("look").at("operations") == made);
        CHECK(answers.sample("stat").at("operations") == 5 * made);
    }
}

TEST_CASE("a common stop ends all parts together; without one each part ends by its own stop") {
    const TestDirectory directory;
    const Json stat = metadata("stat", "file-stat"), read = transfer("read", "read", {{"verify", true}});
    const auto run = [&](const Json& phase) {
        return run_session(plan_message(
            directory.path(), plan_of({metadata("create", "file-create"), transfer("write", "write"), phase})));
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
    const Answers answers =
        run_session(plan_message(directory.path() / "small",
                                 plan_of({mixed({part(1, transfer("dump", "write", {{"segments", 64}})),
                                                 part(1, probe("watch", {{"seconds", 60}, {"rate_per_s", 10}}))})})));
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
    const Answers answers = run_session(plan_message(
        directory.path(),
        plan_of({mixed({part(1, metadata("make", "file-create")), part(1, probe("watch", {{"log", true}}))})})));
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
    const Answers answers = run_session(
        plan_message(directory.path(),
                     plan_of({mixed({part(1, transfer("dump", "write")), part(1, metadata("make", "file-create"))}),
                              metadata("next", "dir-create")})));
    CHECK(answers.sample("both").at("phase") == 0);
    CHECK(answers.sample("next").at("phase") == 1);
}
