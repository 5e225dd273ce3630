// Pools of small files: the files after every step, their contents, and reproducibility by seed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

Json pool(std::string_view name, std::string_view mode, const Json& more = Json::object()) {
    Json phase = {{"kind", "small-files"},
                  {"name", name},
                  {"mode", mode},
                  {"size_low_bytes", 500},
                  {"size_high_bytes", 1500},
                  {"subdirectories", 5},
                  {"write_unit_bytes", 256},
                  {"read_unit_bytes", 300}};
    phase.update(more);
    return phase;
}
Json fill(std::uint64_t files) { return pool("fill", "accumulate", {{"files_per_rank", files}}); }

// Contents by path.
std::map<std::string, std::string> files_in(const fs::path& directory) {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) {
        if (!entry.is_regular_file() || entry.path().filename() == ".strakes-marker") continue;
        found.emplace(fs::relative(entry.path(), directory), text_of(entry.path()));
    }
    return found;
}

std::uint64_t bytes_of(const std::map<std::string, std::string>& files) {
    return std::accumulate(files.begin(), files.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& file) { return sum + file.second.size(); });
}

PoolCount count_of(const std::vector<RankResult>& results) {
    PoolCount total;
    for (const RankResult& result : results) total.add(result.pool);
    return total;
}

const Json kFlow = {{{"op", "delete"}},
                    {{"op", "create"}},
                    {{"op", "write"}},
                    {{"op", "append"}, {"bytes", 77}},
                    {{"op", "fsync"}},
                    {{"op", "close"}},
                    {{"op", "open"}},
                    {{"op", "read"}},
                    {{"op", "read"}, {"bytes", 100}, {"unit_bytes", 30}},
                    {{"op", "write"}, {"bytes", 200}},
                    {{"op", "stat"}},
                    {{"op", "close"}},
                    {{"op", "stat"}}};

}  // namespace

TEST_CASE("a pool is filled with files of sizes in the range, spread over all subdirectories") {
    Stage stage(2, {fill(200)});
    const auto results = run_well(stage, 0);
    const auto files = files_in(stage.path());
    CHECK(files.size() == 400);
    std::map<std::string, int> directories;
    std::map<std::size_t, int> sizes;
    for (const auto& [path, content] : files) {
        CHECK(content.size() >= 500);
        CHECK(content.size() <= 1500);
        ++directories[fs::path(path).parent_path()];
        ++sizes[content.size()];
    }
    CHECK(directories.size() == 10);
    CHECK(sizes.size() > 100);
    const PoolCount count = count_of(results);
    CHECK(count.before_files == 0);
    CHECK(count.after_files == 400);
    CHECK(count.bytes == bytes_of(files));
    CHECK(results[0].operations == 200);
    CHECK(results[0].bytes + results[1].bytes == count.bytes);
}

TEST_CASE("the counts match the files after transactions, and every byte is verified") {
    Stage stage(2, {fill(100), pool("work", "transactions", {{"transactions", 500}, {"verify", true}}),
                    pool("check", "flow",
                         {{"transactions", 1},
                          {"verify", true},
                          {"flow", {{{"op", "open"}}, {{"op", "read"}}, {{"op", "close"}}}}}),
                    pool("empty", "remove")});
    run_well(stage, 0);
    const auto results = run_well(stage, 1);
    const auto files = files_in(stage.path());
    const PoolCount count = count_of(results);
    CHECK(count.loops == 1000);
    CHECK(count.after_files == files.size());
    CHECK(count.bytes == bytes_of(files));
    CHECK(std::ranges::all_of(files, [](const auto& file) { return file.second.size() <= 1500; }));
    CHECK(results[0].verified_bytes > 0);
    CHECK(results[0].verified_bytes == results[0].read_bytes);
    CHECK(results[0].read_bytes < results[0].bytes);
    run_well(stage, 2);
    const PoolCount emptied = count_of(run_well(stage, 3));
    CHECK(emptied.before_files == files.size());
    CHECK(emptied.after_files == 0);
    CHECK(emptied.bytes == 0);
    CHECK(files_in(stage.path()).empty());
}

TEST_CASE("transactions are pairs, counted by operation") {
    const TestDirectory directory;
    const Json more = {{"transactions", 300}, {"read_percent", 80}, {"create_percent", 30}};
    const Answers answers = run_plan(directory.path(), 1, {fill(300), pool("work", "transactions", more)});
    const Json work = answers.sample("work");
    CHECK(work["kind"] == "small-files");
    CHECK(work["operation"] == "transactions");
    CHECK(work["loops"] == 300);
    CHECK(work["read_bytes"] > 0);
    const std::uint64_t reads = calls_in(work["histograms"].at("read"));
    const std::uint64_t creates = calls_in(work["histograms"].at("create"));
    CHECK(creates + calls_in(work["histograms"].at("delete")) == 300);
    CHECK(reads + calls_in(work["histograms"].at("append")) <= 300);
    CHECK(reads > 210);
    CHECK(reads < 265);
    CHECK(creates > 60);
    CHECK(creates < 120);
    CHECK(work["population"]["before_files"] == 300);
    CHECK(work["population"]["after_files"] == 300 + creates - (300 - creates));
    CHECK(directory.entries().empty());
}

TEST_CASE("a pool never becomes empty and at most doubles") {
    for (const int creates : {0, 100}) {
        Stage stage(1, {fill(20), pool("work", "transactions", {{"transactions", 100}, {"create_percent", creates}})});
        run_well(stage, 0);
        const std::uint64_t left = count_of(run_well(stage, 1)).after_files;
        CHECK(left >= (creates == 0 ? 1 : 39));
        CHECK(left <= (creates == 0 ? 2 : 40));
    }
}

TEST_CASE("the same seed leaves the same files, another seed leaves others") {
    const auto after = [](std::uint32_t seed) {
        Json plan = plan_of({fill(60), pool("work", "transactions", {{"transactions", 200}}),
                             pool("loop", "flow", {{"transactions", 30}, {"flow", kFlow}})},
                            2);
        plan["seed"] = seed;
        Stage stage(plan);
        for (std::size_t phase = 0; phase < 3; ++phase) run_well(stage, phase);
        return files_in(stage.path());
    };
    const auto first = after(7);
    CHECK(first == after(7));
    CHECK(first != after(8));
}

TEST_CASE("accumulate adds files, starting at the first item") {
    Json more = pool("more", "accumulate", {{"files_per_rank", 30}});
    Json first = fill(50);
    for (Json* phase : {&first, &more}) (*phase)["first_item"] = 1000;
    Stage stage(2, {first, more});
    const PoolCount begun = count_of(run_well(stage, 0));
    CHECK(begun.before_files == 2000);
    CHECK(begun.after_files == 2100);
    const PoolCount grown = count_of(run_well(stage, 1));
    CHECK(grown.before_files == 2100);
    CHECK(grown.after_files == 2160);
    const auto files = files_in(stage.path());
    CHECK(files.size() == 160);
    CHECK(std::ranges::any_of(files, [](const auto& file) { return file.first.ends_with("1079"); }));
    CHECK(grown.bytes == bytes_of(files));
}

TEST_CASE("files can be added after transactions") {
    Stage stage(1, {fill(20), pool("work", "transactions", {{"transactions", 30}}),
                    pool("more", "accumulate", {{"files_per_rank", 10}}), pool("empty", "remove")});
    run_well(stage, 0);
    const std::uint64_t left = count_of(run_well(stage, 1)).after_files;
    CHECK(count_of(run_well(stage, 2)).after_files == left + 10);
    CHECK(files_in(stage.path()).size() == left + 10);
    run_well(stage, 3);
    CHECK(files_in(stage.path()).empty());
}

TEST_CASE("a removal that is stopped leaves a usable pool") {
    const Json at_once = {{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}};
    Stage stage(1, {fill(20), pool("some", "remove", at_once),
                    pool("work", "transactions", {{"transactions", 30}, {"verify", true}}),
                    pool("more", "remove", at_once), pool("all", "remove")});
    run_well(stage, 0);
    CHECK(count_of(run_well(stage, 1)).after_files == 19);
    const std::uint64_t left = count_of(run_well(stage, 2)).after_files;
    CHECK(files_in(stage.path()).size() == left);
    CHECK(count_of(run_well(stage, 3)).after_files == left - 1);
    CHECK(count_of(run_well(stage, 4)).after_files == 0);
    CHECK(files_in(stage.path()).empty());
}

TEST_CASE("a flow does its operations in order, each with its own histogram") {
    const TestDirectory directory;
    const Json more = {{"transactions", 40}, {"flow", kFlow}, {"verify", true}};
    const Answers answers = run_plan(directory.path(), 2, {fill(10), pool("loop", "flow", more)}, {{"keep", true}});
    CHECK(answers.last("done")["status"] == "ok");
    const Json loop = answers.sample("loop");
    CHECK(loop["loops"] == 80);
    CHECK(loop["operations"] == 80 * kFlow.size());
    for (const char* one : {"create", "delete", "open", "append", "fsync"})
        CHECK(calls_in(loop["histograms"].at(one)) == 80);
    for (const char* two : {"write", "read", "stat", "close"}) CHECK(calls_in(loop["histograms"].at(two)) == 160);
    CHECK(loop["population"]["after_files"] == 20);
    CHECK(loop["population"]["bytes"] == bytes_of(files_in(directory.path())));
    CHECK(loop["effective"]["verified_bytes"] > 80 * 500);
}

TEST_CASE("a flow for some seconds stops between two operations") {
    Stage stage(1,
                {fill(10), pool("loop", "flow", {{"flow", kFlow}, {"stop", {{"rule", "seconds"}, {"seconds", 0.05}}}}),
                 pool("empty", "remove")});
    run_well(stage, 0);
    const auto results = run_well(stage, 1);
    CHECK(results[0].out_of_time);
    CHECK(results[0].operations > 0);
    CHECK(count_of(results).after_files == files_in(stage.path()).size());
    run_well(stage, 2);
    CHECK(files_in(stage.path()).empty());
}

TEST_CASE("a changed byte in a small file is found and named") {
    Stage stage(1, {fill(1), pool("read", "flow",
                                  {{"transactions", 1},
                                   {"verify", true},
                                   {"flow", {{{"op", "open"}}, {{"op", "read"}}, {{"op", "close"}}}}})});
    run_well(stage, 0);
    const std::string path = files_in(stage.path()).begin()->first;
    std::fstream(stage.path() / path, std::ios::in | std::ios::out | std::ios::binary).seekp(401).put('!').put('?');
    const auto failure = stage.run(1).front().failure;
    REQUIRE(failure);
    CHECK(failure->what.find("not the data written") != std::string::npos);
    CHECK(failure->path == "stage/" + path);
    CHECK(*failure->offset_bytes >= 401);
    CHECK(*failure->offset_bytes <= 402);
}

TEST_CASE("a file that someone else removed is named") {
    Stage stage(1, {fill(3), pool("empty", "remove")});
    run_well(stage, 0);
    const std::string path = files_in(stage.path()).begin()->first;
    fs::remove(stage.path() / path);
    const auto failure = stage.run(1).front().failure;
    REQUIRE(failure);
    CHECK(failure->operation == "unlink");
    CHECK(failure->error_name == "ENOENT");
    CHECK(failure->path == "stage/" + path);
}

TEST_CASE("a pool that has too few files for its flow is refused before the timed section") {
    const Json more = {{"transactions", 1}, {"flow", {{{"op", "delete"}}, {{"op", "create"}}, {{"op", "close"}}}}};
    Stage stage(1, {fill(1), pool("loop", "flow", more)});
    run_well(stage, 0);
    const auto failure = stage.run(1).front().failure;
    REQUIRE(failure);
    CHECK(failure->what.find("too few files") != std::string::npos);
}

TEST_CASE("a full file system ends the filling of a pool in order, and the error names the file and a remedy") {
    const TestDirectory place;
    const Mount small(place.path(), "size=1m");
    if (!small.is_there()) return;
    const Answers answers = run_plan(place.path(), 2, {fill(100000)});
    CHECK(answers.last("done")["status"] == "failed");
    CHECK(answers.last("done")["cleaned"] == true);
    const Json error = answers.of_type("error").front();
    CHECK(error["errno"] == "ENOSPC");
    CHECK(error["where"]["path"].get<std::string>().starts_with("p/pool."));
    const Json sample = answers.sample("fill");
    CHECK(sample["stopped_by"] == "error");
    CHECK(sample["population"]["after_files"] == sample["operations"]);
}
