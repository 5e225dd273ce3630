// Streams, samples of a shared file, items shared by all ranks, stages, and the stop rule wear-out.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "backend/registry.hpp"
#include "plan/parse.hpp"
#include "support.hpp"
#include "team/team.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

Json stream(std::string_view name, std::string_view operation, const Json& more = Json::object()) {
    Json phase = {{"kind", "stream"}, {"name", name}, {"operation", operation}, {"block_bytes", 1000}, {"count", 50}};
    phase.update(more);
    return phase;
}

}  // namespace

TEST_CASE("a stream has its own file for every rank, and its sample says so") {
    const TestDirectory directory;
    const Answers answers = run_plan(
        directory.path(), 3, {stream("write", "write"), stream("read", "read", {{"verify", true}})}, {{"keep", true}});
    CHECK(answers.last("done")["status"] == "ok");
    const Json write = answers.sample("write");
    CHECK(write["kind"] == "stream");
    CHECK(write["operation"] == "write");
    CHECK(write["operations"] == 150);
    CHECK(write["bytes"] == 150'000);
    CHECK(write["effective"]["transfer_bytes"] == 1000);
    CHECK(answers.sample("read")["effective"]["verified_bytes"] == 150'000);
    for (const char* name : {"stream.0.data", "stream.1.data", "stream.2.data"})
        CHECK(fs::file_size(directory.path() / "p" / name) == 50'000);
}

TEST_CASE("samples from a shared file have the requested amount, and verify") {
    const Json shared = {{"layout", "shared-file"}};
    Json samples = {{"layout", "shared-file"}, {"access", "random-whole"}, {"verify", true}, {"segments", 6}};
    Stage stage(2, {transfer("write", "write", shared), transfer("read", "read", samples)});
    CHECK(sum_of(run_well(stage, 0)).bytes == 2 * 4 * 65536);
    const auto results = run_well(stage, 1);
    CHECK(sum_of(results).bytes == 2 * 6 * 65536);
    CHECK(sum_of(results).verified == 2 * 6 * 65536);
}

TEST_CASE("samples larger than the blocks of the write stay within the file") {
    const Json shared = {{"layout", "shared-file"}, {"block_bytes", 20480}};
    const Json samples = {{"layout", "shared-file"}, {"access", "random-whole"}, {"verify", true},
                          {"transfer_bytes", 12288}, {"block_bytes", 12288},     {"segments", 13}};
    Stage stage(2, {transfer("write", "write", shared), transfer("read", "read", samples)});
    run_well(stage, 0);
    CHECK(sum_of(run_well(stage, 1)).bytes == 2 * 13 * 12288);
}

TEST_CASE("samples need a file that was completely written") {
    const Json early = {{"layout", "shared-file"}, {"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}};
    const Json samples = {{"layout", "shared-file"}, {"access", "random-whole"}};
    Stage stage(2, {transfer("write", "write", early), transfer("read", "read", samples)});
    stage.run(0);
    const auto failure = stage.run(1).front().failure;
    REQUIRE(failure);
    CHECK(failure->what.find("not written to the end") != std::string::npos);
}

TEST_CASE("if all ranks share the items, every rank does all of them") {
    for (const char* directory : {"unique", "shared"}) {
        const Json tree = {{"directory", directory}, {"depth", 1}, {"branch", 4}, {"items", 10}, {"file_bytes", 100}};
        Json all = tree;
        all.update({{"share", "all"}});
        Stage stage(3, {metadata("create", "file-create", tree), metadata("stat", "file-stat", all),
                        metadata("load", "file-read", all), metadata("remove", "file-remove", tree)});
        CHECK(sum_of(run_well(stage, 0)).operations == 30);
        CHECK(sum_of(run_well(stage, 1)).operations == 90);
        const auto loaded = run_well(stage, 2);
        CHECK(std::ranges::all_of(loaded, [](const RankResult& one) { return one.operations == 30; }));
        CHECK(sum_of(loaded).bytes == 9000);
        CHECK(sum_of(run_well(stage, 3)).operations == 30);
    }
}

TEST_CASE("no rank opens the trees of all ranks to work on their items") {
    constexpr int kSpare = 100;  // fewer than 8 ranks x 8 trees x 4 directories
    const int free_one = ::dup(0);
    ::close(free_one);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const auto check = [&](const std::string& backend, const char* order) {
        INFO(backend, " ", order);
        const Json tree = {{"depth", 1}, {"branch", 4}, {"items", 10}, {"file_bytes", 100}};
        Json all = tree;
        all.update({{"share", "all"}, {"order", order}, {"backend", backend}});
        Stage stage(8, {metadata("create", "file-create", tree), metadata("stat", "file-stat", all),
                        metadata("load", "file-read", all)});
        rlimit few = before;
        few.rlim_cur = static_cast<rlim_t>(free_one) + kSpare;
        CHECK(sum_of(run_well(stage, 0)).operations == 80);
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
        const auto looked = sum_of(run_well(stage, 1)).operations, loaded = sum_of(run_well(stage, 2)).bytes;
        ::setrlimit(RLIMIT_NOFILE, &before);
        CHECK(looked == 640);
        CHECK(loaded == 64000);
    };
    for (const char* order : {"in-order", "random"}) {
        check("posix", order);
        check("raw", order);
    }
}

TEST_CASE("shared items that another rank did not create in time are not expected") {
    const Json early = {{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}};
    Stage stage(3, {metadata("create", "file-create", early), metadata("stat", "file-stat", {{"share", "all"}})});
    CHECK(sum_of(run_well(stage, 0)).operations == 3);
    CHECK(sum_of(run_well(stage, 1)).operations == 9);
}

namespace {

const Json kInput = {{"layout", "shared-file"}, {"block_bytes", 20480}, {"segments", 1}};

Json stage(std::string_view name, const Json& more) {
    Json phase = {{"kind", "stage"}, {"name", name}, {"transfer_bytes", 4096}, {"verify", true}};
    phase.update(more);
    return phase;
}

// Run the phases of a plan on simulated nodes. Return the results of the last phase.
std::vector<RankResult> run_on_nodes(const Json& document, std::uint32_t ranks_per_node, const char* meddle = "") {
    const TestDirectory directory;
    const Descriptor root(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY));
    const Plan plan = parse_plan(document);
    PlanState state(plan);
    const std::string name = "nodes";
    std::atomic<Halt> halt{Halt::none};
    std::vector<Progress> progress(plan.ranks);
    std::vector<Latencies> latencies(plan.ranks);
    std::vector<RankResult> results(plan.ranks);
    Team team(plan.ranks, ranks_per_node);
    const auto body = [&](Team::Rank rank) {
        for (std::size_t index = 0; index < plan.phases.size(); ++index) {
            const PhaseSetting setting{plan, index, state, root.get(), name, Clock::system(), halt};
            const auto workload = make_workload(setting, {.rank = rank,
                                                          .progress = progress[rank],
                                                          .latencies = latencies[rank],
                                                          .leads_node = rank % ranks_per_node == 0,
                                                          .exchange = &team.exchange(rank)});
            RankResult& result = results[rank] = {};
            if (rank == 0) result.failure = workload->lead();
            if (rank == 0) workload->declare();
            team.barrier();
            result.failure = workload->prepare(result);
            team.barrier();
            workload->run(result);
            if (result.failure) halt = Halt::error;
            team.barrier();
            workload->finish(result);
            if (rank == 0 && index == 0 && *meddle != '\0') {
                std::fstream file(directory.path() / meddle, std::ios::in | std::ios::out | std::ios::binary);
                file.seekp(50000);
                file.put('x');
            }
            team.barrier();
        }
    };
    REQUIRE(team.start(body) == 0);
    team.join();
    return results;
}

}  // namespace

TEST_CASE("all ranks of all nodes get all data, and the file is read as often as the plan says") {
    constexpr std::uint64_t kSize = std::uint64_t{7} * 20480;
    for (const std::uint32_t per_node : {7U, 3U, 2U, 1U}) {
        const std::uint64_t nodes = (7 + per_node - 1) / per_node;
        for (const int readers : {0, 1, 2, 5}) {
            for (const bool broadcast : {false, true}) {
                // Sizes that divide the file, that do not divide the file, and that exceed the file.
                for (const int transfer_bytes : {4096, 10000, 1000000}) {
                    if (broadcast && readers == 0) continue;
                    INFO(per_node, " ranks per node, ", readers, " readers, broadcast ", broadcast, ", ",
                         transfer_bytes);
                    const auto results = run_on_nodes(
                        plan_of({transfer("w", "write", kInput), stage("load", {{"readers_per_node", readers},
                                                                                {"broadcast", broadcast},
                                                                                {"transfer_bytes", transfer_bytes}})},
                                7),
                        per_node);
                    std::uint64_t read = 0;
                    for (const RankResult& result : results) {
                        CHECK_FALSE(result.failure.has_value());
                        CHECK(result.verified_bytes == kSize);
                        CHECK(result.bytes == kSize);
                        read += result.read_bytes;
                    }
                    const std::uint64_t times = readers == 0 ? 7 : broadcast ? 1 : nodes;
                    CHECK(read == times * kSize);
                }
            }
        }
    }
}

TEST_CASE("a corrupted byte is found by a rank that verifies it, and ends the phase") {
    for (const int readers : {0, 1}) {
        const auto results =
            run_on_nodes(plan_of({transfer("w", "write", kInput), stage("load", {{"readers_per_node", readers}})}, 4),
                         2, "data.data");
        const auto found = std::ranges::count_if(
            results, [](const RankResult& result) { return result.failure && result.failure->offset_bytes == 50000; });
        CHECK(found > 0);
    }
}

TEST_CASE("a stage reports its readers and the bytes read") {
    const TestDirectory directory;
    const Answers answers = run_plan(
        directory.path(), 5,
        {transfer("w", "write", kInput), stage("load", {{"readers_per_node", 2}}), stage("each", {{"cache", "drop"}})});
    CHECK(answers.last("done").at("status") == "ok");
    const Json load = answers.sample("load");
    CHECK(load.at("kind") == "stage");
    CHECK(load.at("operation") == "read");
    CHECK(load.at("staged").at("readers") == 2);
    CHECK(load.at("staged").at("read_bytes") == 5 * 20480);
    CHECK(load.at("bytes") == 5 * 5 * 20480);
    CHECK(load.at("effective").at("verified_bytes") == 5 * 5 * 20480);
    CHECK(answers.sample("each").at("staged").at("readers") == 5);
    CHECK(answers.sample("each").at("cache").at("file_bytes") == 5 * 20480);
}

TEST_CASE("a file that was not completely written is not staged") {
    const TestDirectory directory;
    const Answers answers = run_plan(
        directory.path(), 2,
        {transfer("w", "write", {{"layout", "shared-file"}, {"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}}),
         stage("load", {{"readers_per_node", 1}})});
    CHECK(answers.last("done").at("status") == "failed");
    CHECK(answers.last("error").at("remedy") == "Give the write phase the rule amount.");
}

namespace {

const Json kSoon = {{"rule", "wear-out"}, {"seconds", 0.05}};

// The distinct operation counts of the ranks.
std::set<std::uint64_t> operations(const Json& sample) {
    std::set<std::uint64_t> counts;
    for (const Json& row : sample.at("ranks")) counts.insert(row.at(4).get<std::uint64_t>());
    return counts;
}

}  // namespace

TEST_CASE("all ranks do as much as the furthest has done when the seconds are over, and later phases find all of it") {
    const TestDirectory place;
    const Json many{{"items", 10'000'000}, {"stop", kSoon}};
    const Json rest{{"items", 10'000'000}};
    const Json file{{"layout", "shared-file"},
                    {"access", "strided"},
                    {"transfer_bytes", 4096},
                    {"block_bytes", 4096},
                    {"segments", 100'000'000}};
    Json write = file;
    write["stop"] = kSoon;
    Json read = file;
    read["verify"] = true;
    const Answers answers = run_plan(
        place.path(), 3,
        {metadata("create", "file-create", many), metadata("stat", "file-stat", rest),
         metadata("remove", "file-remove", rest), transfer("write", "write", write), transfer("read", "read", read)});
    CHECK(answers.last("done").at("status") == "ok");
    for (const char* first : {"create", "write"}) {
        INFO(first);
        const Json sample = answers.sample(first);
        CHECK(sample.at("stopped_by") == "seconds");
        CHECK(operations(sample).size() == 1);
        CHECK(sample.at("elapsed_s").get<double>() >= 0.05);
        for (const char* later : {"stat", "remove"})
            if (std::string(first) == "create") CHECK(operations(answers.sample(later)) == operations(sample));
        if (std::string(first) == "write") CHECK(operations(answers.sample("read")) == operations(sample));
    }
}

TEST_CASE("a phase that ends before its seconds does its full amount on every rank") {
    const TestDirectory place;
    const Json few{{"items", 50}, {"stop", {{"rule", "wear-out"}, {"seconds", 600}}}};
    const Answers answers = run_plan(place.path(), 4, {metadata("create", "file-create", few)});
    const Json sample = answers.sample("create");
    CHECK(sample.at("stopped_by") == "amount");
    CHECK(operations(sample) == std::set<std::uint64_t>{50});
}

TEST_CASE("a rank that fails does not keep the others waiting") {
    const TestDirectory place;
    const Mount mount(place.path(), "size=1m");
    if (!mount.is_there()) return;
    const Json data{{"items", 10'000'000}, {"file_bytes", 65536}, {"stop", {{"rule", "wear-out"}, {"seconds", 600}}}};
    const Answers answers = run_plan(place.path(), 3, {metadata("create", "file-create", data)});
    CHECK(answers.last("error").at("errno") == "ENOSPC");
    CHECK(answers.last("done").at("status") == "failed");
    CHECK(answers.last("done").at("cleaned") == true);
}
