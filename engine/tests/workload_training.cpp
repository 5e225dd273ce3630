// Training: every sample of an epoch once, in seeded order, and the expected utilisation of the accelerator.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plan/parse.hpp"
#include "support.hpp"
#include "workload/samples.hpp"
#include "workload/tally.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

const auto kNever = [] { return false; };

Json training(std::string_view name, std::string_view operation, const Json& more = Json::object()) {
    Json phase = {{"kind", "training"},  {"name", name},           {"operation", operation},
                  {"file_count", 24},    {"samples_per_file", 2},  {"sample_bytes", 9000},
                  {"subdirectories", 3}, {"transfer_bytes", 4096}, {"sample_stdev_bytes", 2000}};
    phase.update(more);
    return phase;
}

const Json kEpoch = {{"batch_samples", 4}, {"readers", 2}, {"shuffle", "samples"}, {"verify", true}};

Trained trained_by(const std::vector<RankResult>& results) {
    Trained all;
    for (const RankResult& result : results) all.add(result.trained);
    return all;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> order_of(const TrainingPhase& phase, std::uint32_t ranks,
                                                              std::uint64_t key) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> order;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        for (std::uint64_t step = 0; step < phase.most_steps(ranks); ++step) {
            for (std::uint64_t i = 0; i < phase.batch_samples; ++i) {
                const strakes::Sample sample = EpochOrder(phase, ranks, rank, key).at(step, i);
                order.emplace_back(sample.file, sample.place);
            }
        }
    }
    return order;
}

}  // namespace

TEST_CASE("an epoch reads every sample once, and all of them are as generated") {
    for (const int readers : {0, 1, 3}) {
        CAPTURE(readers);
        Stage stage(2,
                    {training("fill", "generate"), training("epoch", "train", with(kEpoch, {{"readers", readers}}))});
        std::uint64_t written = 0;
        for (const RankResult& result : stage.run(0)) {
            REQUIRE_FALSE(result.failure);
            CHECK(result.operations == 24);
            written += result.bytes;
        }
        std::uint64_t on_disk = 0;
        for (const auto& entry : fs::recursive_directory_iterator(stage.path() / "dataset.samples"))
            if (entry.is_regular_file()) on_disk += entry.file_size();
        CHECK(on_disk == written);
        std::uint64_t read = 0, verified = 0;
        const std::vector<RankResult> results = stage.run(1);
        for (const RankResult& result : results) {
            REQUIRE_FALSE(result.failure);
            CHECK(result.operations == 24);
            read += result.bytes;
            verified += result.verified_bytes;
        }
        CHECK(read == written);
        CHECK(verified == written);
        CHECK(trained_by(results).steps == 12);
        CHECK(results.front().cache.file_bytes == written);
    }
}

TEST_CASE("a sample that differs from the generated one is named") {
    Stage stage(1, {training("fill", "generate"), training("epoch", "train", kEpoch)});
    REQUIRE_FALSE(stage.run(0).front().failure);
    {
        std::fstream file(stage.path() / "dataset.samples/s1/7", std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(5000);
        file.put('x');
    }
    const std::vector<RankResult> results = stage.run(1);
    REQUIRE(results.front().failure);
    CHECK(results.front().failure->path.ends_with("dataset.samples/s1/7"));
    CHECK(results.front().failure->offset_bytes == 5000);
}

TEST_CASE("a truncated file ends the epoch, whichever reader finds it") {
    Stage stage(1, {training("fill", "generate"), training("epoch", "train", kEpoch)});
    REQUIRE_FALSE(stage.run(0).front().failure);
    fs::resize_file(stage.path() / "dataset.samples/s2/23", 100);
    const std::vector<RankResult> results = stage.run(1);
    REQUIRE(results.front().failure);
    CHECK(results.front().failure->path.ends_with("dataset.samples/s2/23"));
    CHECK(results.front().failure->why == "the file ends before the data that were written");
}

TEST_CASE("orders are permutations of the requested kind, and differ between phases") {
    const Plan plan = parse_plan(plan_of({training("fill", "generate"), training("epoch", "train", kEpoch)}, 3));
    TrainingPhase phase = std::get<TrainingPhase>(plan.phases[1]);
    for (const Shuffle shuffle : {Shuffle::none, Shuffle::files, Shuffle::samples}) {
        phase.shuffle = shuffle;
        const auto order = order_of(phase, 3, 11);
        CHECK(order.size() == 48);
        CHECK(std::set(order.begin(), order.end()).size() == 48);
        CHECK((order == order_of(phase, 3, 12)) == (shuffle == Shuffle::none));
        CHECK(order == order_of(phase, 3, 11));
        // Samples of a file stay adjacent unless samples are shuffled.
        std::uint64_t together = 0;
        for (std::size_t i = 0; i + 1 < order.size(); i += 2) together += order[i].first == order[i + 1].first ? 1 : 0;
        CHECK((together == 24) == (shuffle != Shuffle::samples));
    }
}

TEST_CASE("sizes have the requested mean and deviation, and no sample is empty") {
    TrainingPhase phase;
    phase.file_count = 20000;
    phase.sample_bytes = 1000;
    phase.sample_stdev_bytes = 200;
    Plan plan;
    const SampleRule rule(phase, plan, 0);
    double sum = 0, squares = 0;
    for (std::uint64_t file = 0; file < phase.file_count; ++file) {
        const auto size = static_cast<double>(rule.size_of(file));
        CHECK(size >= 1);
        sum += size;
        squares += size * size;
    }
    const double mean = sum / 20000;
    CHECK(std::abs(mean - 1000) < 4 * 200 / std::sqrt(20000.0));
    CHECK(std::abs(std::sqrt(squares / 20000 - mean * mean) - 200) < 8);
    phase.sample_stdev_bytes = 1000;
    for (std::uint64_t file = 0; file < 5000; ++file) {
        CHECK(rule.size_of(file) >= 1);
        CHECK(rule.size_of(file) < 2000);
    }
}

TEST_CASE("steps compute for the requested mean time") {
    TrainingPhase phase;
    phase.compute_ns = 1000000;
    phase.compute_stdev_ns = 100000;
    double sum = 0;
    for (std::uint64_t step = 0; step < 10000; ++step) sum += static_cast<double>(compute_ns_of(phase, 5, 1, step));
    CHECK(std::abs(sum / 10000 - 1e6) < 4000);
    phase.compute_stdev_ns = 0;
    CHECK(compute_ns_of(phase, 5, 1, 3) == 1000000);
}

TEST_CASE("readers are never further ahead than requested, and batches are consumed in order") {
    Batches batches(6, 2);
    CHECK(batches.take(kNever) == 0);
    CHECK(batches.take(kNever) == 1);
    bool full = true;
    CHECK_FALSE(batches.take([&full] { return !std::exchange(full, false); }));
    batches.put(1);
    bool first = true;
    CHECK_FALSE(batches.next([&first] { return !std::exchange(first, false); }));
    batches.put(0);
    CHECK(batches.next(kNever));
    CHECK(batches.take(kNever) == 2);
    CHECK(batches.next(kNever));
    std::thread reader([&batches] {
        batches.put(2);
        while (const auto batch = batches.take(kNever)) batches.put(*batch);
    });
    for (int i = 0; i < 4; ++i) CHECK(batches.next(kNever));
    reader.join();
}

TEST_CASE("an accelerator that computes much longer than reading takes is kept busy") {
    Stage stage(1,
                {training("fill", "generate"), training("epoch", "train", with(kEpoch, {{"compute_ns", 40'000'000}}))});
    stage.run(0);
    const Trained trained = trained_by(stage.run(1));
    CHECK(trained.steps == 12);
    CHECK(trained.compute_ns >= 12 * 40'000'000ULL);
    CHECK(trained.utilisation > 0.8);
    CHECK(trained.utilisation <= 1.0);
}

TEST_CASE("the accelerators' figures are part of the tally") {
    Tally here, there;
    here.trained = {.ranks = 1, .steps = 12, .compute_ns = 500, .wait_ns = 20, .utilisation = 0.75};
    there.trained = {.ranks = 2, .steps = 24, .compute_ns = 900, .wait_ns = 5, .utilisation = 1.5};
    Packer packer;
    packer(there);
    const std::string bytes = packer.take();
    Tally copy;
    Unpacker unpacker(bytes);
    unpacker(copy);
    here.merge(std::move(copy));
    CHECK(here.trained.ranks == 3);
    CHECK(here.trained.steps == 36);
    CHECK(here.trained.compute_ns == 1400);
    CHECK(here.trained.wait_ns == 25);
    CHECK(here.trained.utilisation == 2.25);
}

TEST_CASE("without a compute time the utilisation is 0") {
    Stage stage(1, {training("fill", "generate"), training("epoch", "train", kEpoch)});
    stage.run(0);
    CHECK(trained_by(stage.run(1)).utilisation == 0);
}

TEST_CASE("a limit on reading lowers the utilisation as expected") {
    // 80 samples per second at most: a batch of 4 takes 50 ms, and computing takes 25 ms, or more on a busy machine.
    const Json phases = plan_of(
        {training("fill", "generate"), training("epoch", "train", with(kEpoch, {{"compute_ns", 25'000'000}}))}, 1);
    const TestDirectory directory;
    const Answers answers =
        run_session(plan_message(directory.path(), phases, {{"impact", {{"operations_per_s", 80}}}}));
    CHECK(answers.exit_status == 0);
    const Json trained = answers.sample("epoch").at("trained");
    CHECK(trained.at("steps") == 12);
    CHECK(trained.at("utilisation_percent").get<double>() < 85);
    CHECK(trained.at("utilisation_percent").get<double>() > 25);
    CHECK(answers.sample("epoch").at("histograms").contains("batch-wait"));
    CHECK(answers.sample("epoch").at("operations") == 48);
}
