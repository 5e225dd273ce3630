// All-reduce inside timed sections.
#include <doctest/doctest.h>

#include <atomic>

#include "team/exchange.hpp"
#include "team/team.hpp"

using namespace strakes;

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
