// Clock comparison on simulated clocks: within the assumed drift, the true offset lies within the stated uncertainty.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "crew/clocks.hpp"

using strakes::ClockRelation;
using strakes::ClockStanding;

namespace {

// True time in nanoseconds.
using Moment = std::int64_t;

constexpr Moment kSecond = 1'000'000'000;

struct SimulatedClock {
    std::int64_t ahead_ns;
    std::int64_t fast_per_billion;

    [[nodiscard]] std::uint64_t at(Moment moment) const {
        return static_cast<std::uint64_t>(moment + ahead_ns + moment / kSecond * fast_per_billion +
                                          moment % kSecond * fast_per_billion / kSecond);
    }
};

std::int64_t offset_at(Moment moment, const SimulatedClock& own, const SimulatedClock& theirs) {
    return static_cast<std::int64_t>(theirs.at(moment) - own.at(moment));
}

class World {
  public:
    explicit World(unsigned seed) : random_(seed) {}

    [[nodiscard]] std::int64_t any(std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
    }
    // A random offset of up to a century, and a drift of up to half the maximum in either direction.
    [[nodiscard]] SimulatedClock clock() {
        constexpr auto kMost = static_cast<std::int64_t>(ClockRelation::kMostDriftPerMillion) * 500;
        const std::int64_t century = std::int64_t{100} * 365 * 24 * 3600 * kSecond;
        return {.ahead_ns = any(0, century), .fast_per_billion = any(-kMost, kMost)};
    }
    // One-way delay of a message: mostly short, sometimes long, and different in each direction.
    [[nodiscard]] Moment way() { return any(0, 9) == 0 ? any(20'000, 5'000'000) : any(0, 60'000); }

    // Exchange one request and reply. Return the time of arrival of the reply.
    Moment ask(ClockRelation& relation, const SimulatedClock& own, const SimulatedClock& theirs, Moment moment) {
        const Moment read = moment + way();
        const Moment heard = read + way();
        shortest_ = std::min(shortest_, heard - moment);
        relation.learn({.asked = own.at(moment), .theirs = theirs.at(read), .heard = own.at(heard)});
        return heard;
    }
    [[nodiscard]] Moment shortest() const { return shortest_; }

  private:
    std::mt19937_64 random_;
    Moment shortest_ = INT64_MAX;
};

std::uint64_t error_of(const ClockStanding& standing, Moment moment, const SimulatedClock& own,
                       const SimulatedClock& first) {
    return static_cast<std::uint64_t>(std::llabs(standing.offset_ns - offset_at(moment, own, first)));
}

}  // namespace

TEST_CASE("the true offset lies within the stated uncertainty, also while clocks drift between comparisons") {
    for (unsigned seed = 0; seed < 500; ++seed) {
        World world(seed);
        const SimulatedClock own = world.clock(), first = world.clock();
        ClockRelation relation;
        Moment moment = world.any(0, 1000 * kSecond);
        for (int comparison = 0; comparison < 10; ++comparison) {
            for (auto left = world.any(1, 16); left > 0; --left) {
                moment = world.ask(relation, own, first, moment);
                const ClockStanding standing = relation.standing({});
                INFO("seed ", seed, " comparison ", comparison);
                CHECK(error_of(standing, moment, own, first) <= standing.uncertainty_ns);
            }
            moment += world.any(0, 100 * kSecond);
            const ClockStanding standing = relation.standing({});
            INFO("seed ", seed, " after comparison ", comparison);
            CHECK(error_of(standing, moment, own, first) <= standing.uncertainty_at(own.at(moment)));
        }
    }
}

TEST_CASE("several replies together bound the offset better than the fastest reply alone") {
    int narrower = 0;
    for (unsigned seed = 0; seed < 200; ++seed) {
        World world(seed);
        const SimulatedClock own = world.clock(), first = world.clock();
        ClockRelation relation;
        Moment moment = 0;
        for (int i = 0; i < 16; ++i) moment = world.ask(relation, own, first, moment);
        // The uncertainty may also contain the drift during the 16 exchanges.
        const auto half = static_cast<std::uint64_t>(world.shortest() / 2 + 1);
        const std::uint64_t most = half + ClockRelation::drift_ns(static_cast<std::uint64_t>(2 * moment));
        CHECK(relation.standing({}).uncertainty_ns <= most);
        narrower += relation.standing({}).uncertainty_ns < half ? 1 : 0;
    }
    CHECK(narrower > 150);
}

TEST_CASE("along a chain of clocks the uncertainties add up and still contain the true offset") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        World world(seed);
        std::vector<SimulatedClock> clocks(6);
        for (SimulatedClock& clock : clocks) clock = world.clock();
        std::vector<ClockRelation> relations(clocks.size());
        std::vector<ClockStanding> standings(clocks.size());
        Moment moment = world.any(0, 1000 * kSecond);
        for (int comparison = 0; comparison < 5; ++comparison) {
            for (std::size_t i = 1; i < clocks.size(); ++i) {
                moment = world.ask(relations[i], clocks[i], clocks[i - 1], moment);
                const std::uint64_t read = clocks[i - 1].at(moment);
                standings[i] = relations[i].standing({.offset_ns = standings[i - 1].offset_ns,
                                                      .uncertainty_ns = standings[i - 1].uncertainty_at(read),
                                                      .at_ns = read});
                INFO("seed ", seed, " clock ", i);
                CHECK(error_of(standings[i], moment, clocks[i], clocks[0]) <= standings[i].uncertainty_ns);
            }
            moment += world.any(0, 10 * kSecond);
            for (std::size_t i = 0; i < clocks.size(); ++i)
                CHECK(error_of(standings[i], moment, clocks[i], clocks[0]) <=
                      standings[i].uncertainty_at(clocks[i].at(moment)));
        }
    }
}

TEST_CASE("a clock that was stepped is followed with the next reply") {
    World world(7);
    const SimulatedClock own = world.clock();
    SimulatedClock first = world.clock();
    ClockRelation relation;
    Moment moment = 0;
    for (int i = 0; i < 16; ++i) moment = world.ask(relation, own, first, moment);
    first.ahead_ns += kSecond;
    moment = world.ask(relation, own, first, moment);
    CHECK(error_of(relation.standing({}), moment, own, first) <= relation.standing({}).uncertainty_ns);
}

TEST_CASE("the drift bound is rounded up, and does not overflow for ten years") {
    CHECK(ClockRelation::drift_ns(0) == 0);
    CHECK(ClockRelation::drift_ns(1) == 1);
    CHECK(ClockRelation::drift_ns(1'000'000) == 200);
    CHECK(ClockRelation::drift_ns(1'000'001) == 201);
    const auto years = static_cast<std::uint64_t>(std::int64_t{10} * 365 * 24 * 3600 * kSecond);
    CHECK(ClockRelation::drift_ns(years) == years / 1'000'000 * 200);
}
