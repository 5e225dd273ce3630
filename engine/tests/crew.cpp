// Clock comparison, start line and introductions of processes, which are threads in these tests.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/library_file.hpp"
#include "crew/clocks.hpp"
#include "crew/process_crew.hpp"
#include "system/processors.hpp"

using namespace strakes;

namespace {

using Rank = Post::Rank;

// Messages in flight, by sender and receiver.
class Mail {
  public:
    void put(Rank from, Rank to, std::string_view bytes) {
        const std::lock_guard lock(mutex_);
        boxes_[{from, to}].emplace_back(bytes);
        changed_.notify_all();
    }
    std::string take(Rank from, Rank to) {
        std::unique_lock lock(mutex_);
        auto& box = boxes_[{from, to}];
        changed_.wait(lock, [&box] { return !box.empty(); });
        std::string bytes = std::move(box.front());
        box.pop_front();
        return bytes;
    }
    // Whether all messages have been received.
    bool is_empty() {
        const std::lock_guard lock(mutex_);
        return std::ranges::all_of(boxes_, [](const auto& box) { return box.second.empty(); });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::pair<Rank, Rank>, std::deque<std::string>> boxes_;
};

class MailPost final : public Post {
  public:
    MailPost(Mail& mail, Rank rank, Rank size) : mail_(mail), rank_(rank), size_(size) {}

    [[nodiscard]] Rank rank() const override { return rank_; }
    [[nodiscard]] Rank size() const override { return size_; }
    void send(Rank to, std::string_view bytes) override { mail_.put(rank_, to, bytes); }
    std::string receive(Rank from, Wait /*wait*/) override { return mail_.take(from, rank_); }
    std::string swap(Rank to, std::string_view bytes, Rank from, Wait wait) override {
        send(to, bytes);
        return receive(from, wait);
    }
    std::unique_ptr<Exchange> exchange(Circle /*circle*/, std::vector<Rank> /*ranks*/,
                                       std::vector<std::uint32_t> /*nodes*/) override {
        return nullptr;
    }
    std::unique_ptr<LibraryFiles> libraries(std::vector<Rank> /*ranks*/) override { return nullptr; }

  private:
    Mail& mail_;
    Rank rank_, size_;
};

// Introduction of a process on this host and machine that may use `processors` processors.
std::string introduction(std::string_view host, std::string_view machine, std::size_t processors) {
    std::vector<std::uint32_t> numbers(processors);
    std::iota(numbers.begin(), numbers.end(), 0);
    return Crowd::introduction(host, machine, 1, Processors::of(numbers));
}

// A crowd with two processes on each host. Each host is a machine.
Crowd crowd_of(Rank hosts) {
    std::vector<std::string> introductions;
    introductions.reserve(std::size_t{2} * hosts);
    for (Rank rank = 0; rank < 2 * hosts; ++rank)
        introductions.push_back(introduction("n" + std::to_string(rank / 2), std::to_string(rank / 2), 2));
    return Crowd(introductions);
}

// Run the body in all processes, each of them a thread.
void run_all(const Crowd& crowd, Mail& mail, const std::function<void(MailPost&)>& body) {
    std::vector<std::thread> threads;
    threads.reserve(crowd.size());
    for (Rank rank = 0; rank < crowd.size(); ++rank) {
        threads.emplace_back([&, rank] {
            MailPost post(mail, rank, crowd.size());
            body(post);
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("comparing a clock with itself gives an offset of zero within the uncertainty, for any number of nodes") {
    for (const Rank hosts : {1U, 2U, 3U, 5U, 8U}) {
        const Crowd crowd = crowd_of(hosts);
        Mail mail;
        std::atomic<int> wrong{0}, exact{0};
        run_all(crowd, mail, [&](MailPost& post) {
            Clocks clocks(post, crowd);
            const auto off = [&] { return static_cast<std::uint64_t>(std::llabs(clocks.timeline().offset_ns)); };
            if (off() > clocks.uncertainty_ns()) ++wrong;
            if (clocks.uncertainty_ns() == 0) ++exact;
            std::vector<Rank> half(hosts);  // the first half of the processes
            for (Rank rank = 0; rank < hosts; ++rank) half[rank] = rank;
            if (post.rank() >= hosts) return;
            clocks.compare(half);
            if (off() > clocks.uncertainty_ns()) ++wrong;
        });
        CHECK(wrong == 0);
        CHECK(exact == 2);  // both processes of rank 0's node
        CHECK(mail.is_empty());
    }
}

TEST_CASE("no process passes the start line before all have reached it, and all learn how they started") {
    constexpr int kRounds = 20;
    const Crowd crowd = crowd_of(3);
    for (const Rank count : {1U, 2U, 5U, 6U}) {
        Mail mail;
        std::atomic<int> come{0}, too_early{0}, wrong{0};
        run_all(crowd, mail, [&](MailPost& post) {
            Clocks clocks(post, crowd);
            if (post.rank() >= count) return;
            std::vector<Rank> ranks(count);
            for (Rank rank = 0; rank < count; ++rank) ranks[rank] = rank;
            Performer performer;
            Members members(performer, post, crowd, clocks, ranks, post.rank(), {});
            for (int round = 1; round <= kRounds; ++round) {
                ++come;
                const Start start = members.start_line();
                if (come < round * static_cast<int>(count)) ++too_early;
                if (!start.begun || start.crowded ||
                    (start.clock_uncertainty_ns > 0) != (post.rank() >= 2 && count > 1))
                    ++wrong;
                static_cast<void>(members.any(false));
            }
        });
        CHECK(too_early == 0);
        CHECK(wrong == 0);
        CHECK(mail.is_empty());
    }
}

TEST_CASE("all processes derive the same crowd from the introductions") {
    const std::vector<std::string> introductions{introduction("n1", "a", 2), introduction("n2", "b", 9),
                                                 introduction("n1", "a", 2), introduction("n1", "c", 2),
                                                 introduction("n2", "b", 3)};
    const Crowd expected(introductions);
    Mail mail;
    std::atomic<int> wrong{0};
    run_all(expected, mail, [&](MailPost& post) {
        const Crowd crowd = Crowd::meet(post, introductions[post.rank()]);
        if (crowd.size() != expected.size() || crowd.nodes().size() != 3) ++wrong;
        for (Rank rank = 0; rank < crowd.size(); ++rank) {
            if (crowd.node_of(rank).host != expected.node_of(rank).host ||
                crowd.node_of(rank).ranks != expected.node_of(rank).ranks ||
                crowd.place_of(rank) != expected.place_of(rank) || crowd.pid_of(rank) != expected.pid_of(rank))
                ++wrong;
            const Crowd::Share share = crowd.share_of(rank, std::vector<Rank>{0, 1, 2, 3, 4});
            const Crowd::Share known = expected.share_of(rank, std::vector<Rank>{0, 1, 2, 3, 4});
            if (share.ranks != known.ranks || share.processors.count() != known.processors.count()) ++wrong;
        }
    });
    CHECK(wrong == 0);
    CHECK(mail.is_empty());
    CHECK(expected.node_of(4).ranks == std::vector<Rank>{1, 4});
    CHECK(expected.place_of(2) == 1);
}

TEST_CASE("ranks on one machine share its processors, also if the machine appears as several nodes") {
    const Crowd crowd({introduction("n1", "a", 2), introduction("n1", "a", 2), introduction("n2", "a", 2),
                       introduction("n3", "b", 9)});
    CHECK(crowd.nodes().size() == 3);
    const auto crowded = [&crowd](Rank one, const std::vector<Rank>& ranks) {
        const Crowd::Share share = crowd.share_of(one, ranks);
        return share.processors.too_few_for(share.ranks.size());
    };
    CHECK_FALSE(crowded(0, {0, 1}));
    CHECK_FALSE(crowded(2, {0, 2, 3}));
    CHECK(crowded(2, {0, 1, 2, 3}));
    CHECK_FALSE(crowded(3, {0, 1, 2, 3}));
    CHECK(crowd.share_of(3, std::vector<Rank>{0, 3}).processors.count() == 9);
}

TEST_CASE("the processors of ranks with different affinity are added up") {
    Processors both(std::string("\x01", 1));
    both.add(Processors(std::string("\x00\x80", 2)));
    CHECK(both.count() == 2);
    CHECK_FALSE(both.too_few_for(2));
    CHECK(both.too_few_for(3));
    CHECK_FALSE(Processors().too_few_for(99));  // unknown
    CHECK(Processors::allowed().count() >= 1);
}

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

class ClockWorld {
  public:
    explicit ClockWorld(unsigned seed) : random_(seed) {}

    [[nodiscard]] std::int64_t any(std::int64_t from, std::int64_t to) {
        return std::uniform_int_distribution<std::int64_t>(from, to)(random_);
    }
    // A random offset of up to a century, and a drift of up to half the maximum in either direction.
    [[nodiscard]] SimulatedClock clock() {
        constexpr auto kMost = static_cast<std::int64_t>(kMostDriftPerMillion) * 500;
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
        ClockWorld world(seed);
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
        ClockWorld world(seed);
        const SimulatedClock own = world.clock(), first = world.clock();
        ClockRelation relation;
        Moment moment = 0;
        for (int i = 0; i < 16; ++i) moment = world.ask(relation, own, first, moment);
        // The uncertainty may also contain the drift during the 16 exchanges.
        const auto half = static_cast<std::uint64_t>(world.shortest() / 2 + 1);
        const std::uint64_t most = half + drift_ns(static_cast<std::uint64_t>(2 * moment));
        CHECK(relation.standing({}).uncertainty_ns <= most);
        narrower += relation.standing({}).uncertainty_ns < half ? 1 : 0;
    }
    CHECK(narrower > 150);
}

TEST_CASE("along a chain of clocks the uncertainties add up and still contain the true offset") {
    for (unsigned seed = 0; seed < 200; ++seed) {
        ClockWorld world(seed);
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
    ClockWorld world(7);
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
    CHECK(drift_ns(0) == 0);
    CHECK(drift_ns(1) == 1);
    CHECK(drift_ns(1'000'000) == 200);
    CHECK(drift_ns(1'000'001) == 201);
    const auto years = static_cast<std::uint64_t>(std::int64_t{10} * 365 * 24 * 3600 * kSecond);
    CHECK(drift_ns(years) == years / 1'000'000 * 200);
}
