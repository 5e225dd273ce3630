// Stages: every rank gets all bytes, regardless of the number of readers and nodes.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "plan/parse.hpp"
#include "support.hpp"
#include "team/team.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

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
                // Sizes that divide the file, that do not, and that exceed it.
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
    const Answers answers = run_session(plan_message(
        directory.path(), plan_of({transfer("w", "write", kInput), stage("load", {{"readers_per_node", 2}}),
                                   stage("each", {{"cache", "drop"}})},
                                  5)));
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
    const Answers answers = run_session(plan_message(
        directory.path(),
        plan_of(
            {transfer("w", "write", {{"layout", "shared-file"}, {"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}}),
             stage("load", {{"readers_per_node", 1}})})));
    CHECK(answers.last("done").at("status") == "failed");
    CHECK(answers.last("error").at("remedy") == "Give the write phase the rule amount.");
}
