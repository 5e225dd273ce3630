// The team starts all ranks or none, has working barriers, and gives each rank its own descriptor table. The results of
// thousands of ranks are merged in log2(ranks) steps and little memory. Messages between ranks arrive complete and in
// order, whichever side comes first, and waiting ends.
#include "team/team.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/sample.hpp"
#include "system/processors.hpp"
#include "team/exchange.hpp"
#include "workload/tally.hpp"

using namespace strakes;

TEST_CASE("no rank leaves a barrier before all have reached it") {
    constexpr Team::Rank kRanks = 5;
    constexpr int kRounds = 200;
    Team team(kRanks);
    std::atomic<int> come{0};
    std::atomic<int> too_early{0};
    REQUIRE(team.start([&](Team::Rank) {
        for (int round = 1; round <= kRounds; ++round) {
            come.fetch_add(1);
            team.barrier();
            if (come.load() < round * static_cast<int>(kRanks)) too_early.fetch_add(1);
            team.barrier();
        }
    }) == 0);
    team.join();
    CHECK(too_early == 0);
    CHECK(come == kRounds * static_cast<int>(kRanks));
}

TEST_CASE("if one rank fails, all learn of it at the next barrier, and only there") {
    constexpr Team::Rank kRanks = 4;
    constexpr int kRounds = 100;
    Team team(kRanks);
    Gathered<std::vector<bool>> answers(kRanks);
    REQUIRE(team.start([&](Team::Rank rank) {
        for (int round = 0; round < kRounds; ++round) {
            const bool failed = round % 3 == 1 && rank == static_cast<Team::Rank>(round) % kRanks;
            answers.of(rank).push_back(team.any(failed));
        }
    }) == 0);
    team.join();
    for (Team::Rank rank = 0; rank < kRanks; ++rank) {
        for (int round = 0; round < kRounds; ++round) {
            INFO("rank ", rank, " round ", round);
            CHECK(answers.of(rank)[static_cast<std::size_t>(round)] == (round % 3 == 1));
        }
    }
}

TEST_CASE("ranks pass the start line repeatedly, and keep their CPU affinity") {
    const std::size_t processors = Processors::allowed().count();
    for (const Team::Rank ranks : {1U, 2U, 5U}) {
        Team team(ranks);
        std::atomic<int> wrong{0};
        REQUIRE(team.start([&](Team::Rank) {
            for (int round = 0; round < 100; ++round) {
                team.barrier();
                const strakes::Start start = team.start_line();
                if (!start.begun || start.clock_uncertainty_ns != 0 || start.crowded != (ranks > processors)) ++wrong;
                if (Processors::allowed().count() != processors) ++wrong;
            }
        }) == 0);
        team.join();
        CHECK(wrong == 0);
    }
}

TEST_CASE("a thread moves to a free processor, if there is one, and back") {
    const Processors allowed = Processors::allowed();
    {
        const Aside aside(allowed, Processors::current());
        CHECK(Processors::allowed().count() == std::max<std::size_t>(allowed.count() - 1, 1));
    }
    CHECK(Processors::allowed().bytes() == allowed.bytes());
    const Aside nowhere(allowed, allowed);
    CHECK(Processors::allowed().bytes() == allowed.bytes());
}

TEST_CASE("values of the ranks are visible to rank 0 after the barrier") {
    constexpr Team::Rank kRanks = 6;
    Team team(kRanks);
    Gathered<int> values(kRanks);
    int sum = 0;
    REQUIRE(team.start([&](Team::Rank rank) {
        values.of(rank) = static_cast<int>(rank) + 1;
        team.barrier();
        if (rank == 0)
            for (Team::Rank other = 0; other < kRanks; ++other) sum += values.of(other);
    }) == 0);
    team.join();
    CHECK(sum == 21);
}

#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a descriptor that a rank opens is not in the table of other ranks") {
    Team team(2);
    std::atomic<int> opened{-1};
    std::atomic<bool> seen{false};
    REQUIRE(team.start([&](Team::Rank rank) {
        if (rank == 0) opened = ::fcntl(STDERR_FILENO, F_DUPFD, 700);
        team.barrier();
        if (rank == 1) seen = ::fcntl(opened, F_GETFD) >= 0;
        team.barrier();
    }) == 0);
    team.join();
    CHECK(opened >= 700);
    CHECK_FALSE(seen);
}
#endif

namespace {

constexpr std::uint32_t kRanks = 4096;
constexpr std::uint32_t kRanksPerNode = 32;
constexpr std::uint64_t kCalls = 2000;  // calls per rank, with latencies from microseconds to a second

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

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::size_t size, unsigned first) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((first + i * 7) & 0xffU);
    return bytes;
}

const std::atomic<Halt> kNoHalt{Halt::none};

}  // namespace

TEST_CASE("messages arrive complete and in order, also while several are in flight in both directions") {
    constexpr Team::Rank kRanks = 5;
    constexpr unsigned kRounds = 200;
    Team team(kRanks);
    std::atomic<int> wrong{0};
    REQUIRE(team.start([&](Team::Rank rank) {
        Exchange& exchange = team.exchange(rank);
        for (unsigned round = 0; round < kRounds; ++round) {
            std::vector<Bytes> sent, rooms;
            std::vector<Exchange::Ticket> tickets;
            for (Team::Rank other = 0; other < kRanks; ++other) {
                sent.push_back(bytes_of((round * 37 + other) % 300, round + rank));
                rooms.emplace_back(300);
            }
            // Every rank sends to every rank, itself included. Half of the ranks receive first.
            for (int half = 0; half < 2; ++half) {
                for (Team::Rank other = 0; other < kRanks; ++other) {
                    const bool sends = (half == 0) == ((rank + round) % 2 == 0);
                    tickets.push_back(sends ? exchange.send(other, sent[other])
                                            : exchange.receive(other, rooms[other]));
                }
            }
            std::vector<std::size_t> sizes;
            sizes.reserve(tickets.size());
            for (const Exchange::Ticket ticket : tickets)
                sizes.push_back(exchange.wait(ticket, kNoHalt).value_or(SIZE_MAX));
            const std::size_t first_room = (rank + round) % 2 == 0 ? kRanks : 0;
            for (Team::Rank other = 0; other < kRanks; ++other) {
                const Bytes expected = bytes_of((round * 37 + rank) % 300, round + other);
                const std::size_t size = sizes[first_room + other];
                if (size != expected.size() || !std::equal(expected.begin(), expected.end(), rooms[other].begin()))
                    wrong.fetch_add(1);
            }
        }
    }) == 0);
    team.join();
    CHECK(wrong == 0);
}

TEST_CASE("two messages of a rank fill the receiver's buffers in order") {
    Team team(2);
    std::vector<std::byte> first(4), second(4);
    std::size_t first_size = 0, second_size = 0;
    REQUIRE(team.start([&](Team::Rank rank) {
        Exchange& exchange = team.exchange(rank);
        if (rank == 0) {
            const Bytes one = bytes_of(4, 1), nothing;
            const Exchange::Ticket a = exchange.send(1, one);
            const Exchange::Ticket b = exchange.send(1, nothing);
            CHECK(exchange.wait(b, kNoHalt).has_value());
            CHECK(exchange.wait(a, kNoHalt).has_value());
        } else {
            const Exchange::Ticket a = exchange.receive(0, first);
            const Exchange::Ticket b = exchange.receive(0, second);
            second_size = exchange.wait(b, kNoHalt).value_or(SIZE_MAX);
            first_size = exchange.wait(a, kNoHalt).value_or(SIZE_MAX);
        }
    }) == 0);
    team.join();
    CHECK(first_size == 4);
    CHECK(second_size == 0);
    CHECK(first == bytes_of(4, 1));
}

TEST_CASE("a broadcast reaches every rank of its group, whichever rank sends it") {
    constexpr Team::Rank kRanks = 11;
    Team team(kRanks);
    std::atomic<int> wrong{0};
    REQUIRE(team.start([&](Team::Rank rank) {
        Exchange& exchange = team.exchange(rank);
        for (Team::Rank size = 1; size <= kRanks; ++size) {
            // Members are ranks size - 1, size - 2, ..., 0, so the highest rank sends.
            std::vector<Exchange::Rank> group;
            group.reserve(size);
            for (Team::Rank other = size; other > 0; --other) group.push_back(other - 1);
            if (rank >= size) continue;
            Bytes bytes = rank + 1 == size ? bytes_of(1000, size) : Bytes(1000);
            if (!broadcast(exchange, group, size - 1 - rank, bytes, kNoHalt)) wrong.fetch_add(1);
            if (bytes != bytes_of(1000, size)) wrong.fetch_add(1);
        }
    }) == 0);
    team.join();
    CHECK(wrong == 0);
}

TEST_CASE("a broadcast of many pieces reaches every rank complete, along the chain and along the tree") {
    constexpr Team::Rank kRanks = 7;
    Team team(kRanks);
    std::atomic<int> wrong{0};
    REQUIRE(team.start([&](Team::Rank rank) {
        Exchange& exchange = team.exchange(rank);
        std::vector<Exchange::Rank> group(kRanks);
        std::iota(group.begin(), group.end(), 0);
        for (const std::size_t size : {0U, 1U, 99U, 100U, 101U, 300U, 699U, 700U, 5000U, 5001U}) {
            Bytes bytes = rank == 0 ? bytes_of(size, 3) : Bytes(size);
            if (!broadcast(exchange, group, rank, bytes, kNoHalt, 100)) wrong.fetch_add(1);
            if (bytes != bytes_of(size, 3)) wrong.fetch_add(1);
        }
    }) == 0);
    team.join();
    CHECK(wrong == 0);
}

TEST_CASE("a halt ends waiting for a message that is never sent, and for a receiver that never comes") {
    Team team(2);
    std::atomic<Halt> halt{Halt::none};
    std::atomic<int> ended{0};
    Bytes later(8);
    REQUIRE(team.start([&](Team::Rank rank) {
        Exchange& exchange = team.exchange(rank);
        Bytes bytes = bytes_of(8, 5);
        const Exchange::Ticket ticket = rank == 0 ? exchange.receive(1, bytes) : exchange.send(1, bytes);
        team.barrier();
        if (rank == 0) halt = Halt::error;
        if (!exchange.wait(ticket, halt)) ended.fetch_add(1);
        team.barrier();
        exchange.settle();
        team.barrier();
        // The cancelled message must not arrive later.
        if (rank == 0) {
            const Bytes fresh = bytes_of(8, 9);
            CHECK(exchange.wait(exchange.send(1, fresh), kNoHalt));
        } else {
            CHECK(exchange.wait(exchange.receive(0, later), kNoHalt));
        }
    }) == 0);
    team.join();
    CHECK(ended == 2);
    CHECK(later == bytes_of(8, 9));
}

TEST_CASE("the ranks of a node share memory, other nodes have their own, and it is zero at first") {
    constexpr Team::Rank kRanks = 5;
    Team team(kRanks, 2);
    std::atomic<int> wrong{0};
    REQUIRE(team.start([&](Team::Rank rank) {
        Exchange& exchange = team.exchange(rank);
        for (int round = 0; round < 20; ++round) {
            const auto memory = exchange.node_memory(64);
            team.barrier();
            if (memory.size() != 64 || memory[rank] != std::byte{0}) wrong.fetch_add(1);
            team.barrier();
            memory[rank] = std::byte{1};
            team.barrier();
            for (Team::Rank other = 0; other < kRanks; ++other) {
                const bool here = exchange.nodes()[other] == exchange.nodes()[rank];
                if ((memory[other] == std::byte{1}) != here) wrong.fetch_add(1);
            }
            team.barrier();
            exchange.settle();
            team.barrier();
        }
    }) == 0);
    team.join();
    CHECK(wrong == 0);
}

TEST_CASE("all ranks get the maximum of each number over all ranks, in every round") {
    constexpr std::uint64_t kRounds = 50;
    for (const Team::Rank ranks : {1U, 2U, 3U, 5U, 8U}) {
        Team team(ranks);
        std::atomic<int> wrong{0};
        REQUIRE(team.start([&](Team::Rank rank) {
            for (std::uint64_t round = 0; round < kRounds; ++round) {
                const Numbers most = most_of_all(team.exchange(rank), rank, {round + rank, round % ranks == rank, 7});
                if (most != Numbers{round + ranks - 1, 1, 7}) ++wrong;
            }
        }) == 0);
        team.join();
        CHECK(wrong == 0);
    }
}
