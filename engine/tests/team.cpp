// The team starts all ranks or none, has working barriers, and gives each rank its own descriptor table.
#include "team/team.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <vector>

#include "system/processors.hpp"

using strakes::Aside;
using strakes::Gathered;
using strakes::Processors;
using strakes::Team;

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
