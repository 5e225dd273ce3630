// Messages between ranks arrive complete and in order, whichever side comes first, and waiting ends.
#include "team/exchange.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include "team/team.hpp"

using namespace strakes;

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
