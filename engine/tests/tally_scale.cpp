// Merges the results of thousands of ranks in log2(ranks) steps and little memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "protocol/sample.hpp"
#include "team/team.hpp"
#include "workload/tally.hpp"

using namespace strakes;

namespace {

constexpr std::uint32_t kRanks = 4096;
constexpr std::uint32_t kRanksPerNode = 32;
constexpr std::uint64_t kCalls = 2000;  // per rank, with latencies from microseconds to a second

Tally tally_of(std::uint32_t rank) {
    std::mt19937_64 random(rank);
    std::uniform_real_distribution<double> magnitude(10, 30);
    Latencies latencies;
    for (std::uint64_t i = 0; i < kCalls; ++i)
        latencies.calls.record(static_cast<std::uint64_t>(std::exp2(magnitude(random))));
    RankResult result;
    result.start = rank;
    result.end = 1'000'000 + rank;
    result.bytes = kCalls * 4096;
    result.operations = kCalls;
    Tally tally;
    tally.add(result, latencies, Timeline());
    if (rank % kRanksPerNode != 0) return tally;
    CounterDelta counters;
    for (int device = 0; device < 8; ++device) counters.devices["nvme" + std::to_string(device)] = {};
    tally.nodes.push_back(
        {.host = "node" + std::to_string(rank / kRanksPerNode), .first_rank = rank, .delta = std::move(counters)});
    return tally;
}

// Simulates process `mine` of many. receive() computes the sender's message at that moment.
class Imagined final : public Processes {
  public:
    Imagined(Rank mine, std::size_t depth, std::size_t& deepest) : mine_(mine), depth_(depth), deepest_(deepest) {
        deepest_ = std::max(deepest_, depth);
    }

    Tally collected() {
        Tally tally = tally_of(mine_);
        const Team team(kRanks, mine_, *this);
        static_cast<void>(collect(team, tally));
        return tally;
    }
    [[nodiscard]] std::size_t heard() const { return heard_; }

    void send(Rank /*to*/, std::string_view bytes) override { said_ = bytes; }
    std::string receive(Rank from) override {
        ++heard_;
        Imagined other(from, depth_ + 1, deepest_);
        static_cast<void>(other.collected());
        return std::move(other.said_);
    }

    void perform(std::function<void()> /*body*/) override { never(); }
    void wait() override {}
    bool any(bool /*mine*/) override { never(); }
    Start start_line() override { never(); }
    std::vector<std::string> all(std::string_view /*mine*/) override { never(); }
    Exchange& exchange() override { never(); }
    [[nodiscard]] const Timeline& timeline() const override { never(); }
    [[nodiscard]] bool leads_node() const override { never(); }
    [[nodiscard]] Rank ranks_on_node() const override { never(); }
    [[nodiscard]] Rank place_on_machine() const override { never(); }

  private:
    [[noreturn]] static void never() { throw std::logic_error("not asked for when results are collected"); }

    Rank mine_;
    std::size_t depth_;
    std::size_t& deepest_;
    std::size_t heard_ = 0;
    std::string said_;
};

std::uint64_t status_kib(const std::string& key) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word == key + ":") {
            std::uint64_t value = 0;
            status >> value;
            return value;
        }
    }
    return 0;
}

}  // namespace

TEST_CASE("the results of 4,096 ranks are merged in 12 steps and less than a GiB") {
    std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak
    const std::uint64_t before_kib = status_kib("VmRSS");
    std::size_t deepest = 0;
    Imagined first(0, 0, deepest);
    const Tally whole = first.collected();
    Plan plan{.seed = 0, .ranks = kRanks, .ranks_per_node = {}, .phases = {}};
    plan.phases.emplace_back(TransferPhase());
    const Timeline timeline;
    const std::string sample = sample_of({.plan = plan, .index = 0, .timeline = timeline, .tally = whole}).dump();
    const std::uint64_t peak_kib = status_kib("VmHWM") - before_kib;

    CHECK(first.heard() == std::bit_width(kRanks - 1));
    CHECK(deepest == std::bit_width(kRanks - 1));
    CHECK(whole.rows.size() == kRanks);
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) CHECK(whole.rows[rank - 1].start <= whole.rows[rank].start);
    CHECK(whole.latencies.calls.count() == kRanks * kCalls);
    CHECK(whole.nodes.size() == kRanks / kRanksPerNode);
    CHECK(whole.nodes.back().host == "node127");
    CHECK(nlohmann::json::parse(sample).at("operations") == kRanks * kCalls);
    CHECK(peak_kib < 1024 * 1024);
    MESSAGE("peak of rank 0 and, at the same time, of all the others it hears of: ", peak_kib / 1024,
            " MiB; sample of ", sample.size() / 1024, " KiB");
}
