// Probes: every scheduled operation is done, late or not, and a failed one is reported without ending the probe.
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

std::uint64_t counted(const Json& histogram) {
    std::uint64_t sum = 0;
    for (const Json& bucket : histogram.at("buckets")) sum += bucket[1].get<std::uint64_t>();
    return sum;
}

}  // namespace

TEST_CASE("every scheduled operation is done once, and the log has all of them") {
    const TestDirectory directory;
    const Answers answers = run_session(plan_message(
        directory.path(),
        plan_of({probe("creations", "file-create", {{"log", true}, {"file_bytes", 10}}), probe("lookups", "file-stat"),
                 probe("writes", "write-fsync", {{"file_bytes", 4096}, {"rate_per_s", 12.5}, {"seconds", 0.4}})},
                3),
        {{"keep", true}}));
    CHECK(answers.last("done").at("status") == "ok");
    const Json sample = answers.sample("creations");
    CHECK(sample.at("operations") == 60);
    CHECK(sample.at("bytes") == 600);
    CHECK(sample.at("stopped_by") == "amount");
    CHECK(sample.at("kind") == "probe");
    CHECK(counted(sample.at("histograms").at("file-create")) == 60);
    CHECK(counted(sample.at("histograms").at("lag")) == 60);
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
    const Answers answers = run_session(plan_message(
        directory.path(), plan_of({probe("kept", "file-fsync", {{"file_bytes", 4096}})}, 2), {{"keep", true}}));
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
    const Answers answers = run_session(plan_message(directory.path(),
                                                     plan_of({probe("cycles", "file-cycle", {{"file_bytes", 4096}}),
                                                              probe("reads", "file-read", {{"file_bytes", 4096}})},
                                                             2),
                                                     {{"keep", true}}));
    CHECK(answers.last("done").at("status") == "ok");
    for (const char* name : {"cycles", "reads"}) {
        CHECK(answers.sample(name).at("operations") == 40);
        CHECK(answers.sample(name).at("bytes") == 40 * 4096);
    }
    CHECK(fs::is_empty(directory.path() / "p" / "cycles.0.probe"));
    CHECK(fs::file_size(directory.path() / "p" / "reads.1.probe" / "data") == std::uint64_t{256} * 4096);
}

TEST_CASE("late operations are measured from the time they were scheduled") {
    // No system does a million operations per second, so the last one is late by about the overrun of the phase.
    const TestDirectory directory;
    const Answers answers = run_session(plan_message(
        directory.path(), plan_of({probe("creations", "file-create", {{"rate_per_s", 1e6}, {"seconds", 2e-3}})}, 1)));
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
