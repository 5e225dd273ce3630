// Detection of silent processes, as opposed to a listener that did not run, and the summary of a node's ranks.
#include <doctest/doctest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "crew/local_ranks.hpp"
#include "crew/process_crew.hpp"
#include "crew/silence.hpp"
#include "session/together.hpp"
#include "workload/workload.hpp"

using namespace strakes;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kGone{8};

struct Listener {
    explicit Listener(std::size_t others) : silence(others, kGone, now) { silence.begin(now); }

    // Advance the time in steps of 200 ms, as for a process that runs.
    void listen(seconds span) {
        const auto end = now + span;
        while (now < end) silence.look(now += milliseconds(200));
    }
    // Advance the time in one step, as for a process that does not run.
    void is_held_up(seconds span) { silence.look(now += span); }

    Silence::Time::time_point now = Silence::Time::now();
    Silence silence;
};

}  // namespace

TEST_CASE("a process is first silent, and lost when the limit has passed") {
    Listener listener(2);
    for (const std::size_t place : {0, 1}) listener.silence.hear(place, true);
    listener.listen(seconds(4));
    CHECK_FALSE(listener.silence.is_silent(0));
    listener.listen(seconds(3));
    listener.silence.hear(1, true);
    CHECK(listener.silence.is_silent(0));
    CHECK_FALSE(listener.silence.is_gone(0));
    listener.listen(seconds(2));
    CHECK(listener.silence.is_gone(0));
    CHECK_FALSE(listener.silence.is_silent(1));
}

TEST_CASE("time during which the listener did not run is not counted, time between such pauses is") {
    Listener listener(1);
    listener.silence.hear(0, true);
    listener.is_held_up(seconds(600));
    CHECK_FALSE(listener.silence.is_silent(0));
    for (int pause = 0; pause < 3; ++pause) {
        listener.listen(seconds(2));
        listener.is_held_up(seconds(5));
    }
    CHECK(listener.silence.is_gone(0));
}

TEST_CASE("a clock that stops or steps back does not shorten a silence") {
    Listener listener(1);
    listener.silence.hear(0, true);
    listener.listen(seconds(7));
    listener.silence.look(listener.now - seconds(5));
    listener.silence.look(listener.now - seconds(5));
    listener.now -= seconds(5);
    listener.listen(seconds(2));
    CHECK(listener.silence.is_gone(0));
}

TEST_CASE(
    "no process is late for a plan while others are still joining, and those that have joined are judged as usual") {
    Listener listener(6);
    listener.silence.hear(0, true);
    for (const std::size_t place : {1, 2, 3}) {
        listener.listen(seconds(6));
        listener.silence.hear(place, true);
        CHECK(listener.silence.has_begun(place));
    }
    CHECK(listener.silence.is_gone(0));
    CHECK_FALSE(listener.silence.is_silent(4));
    listener.listen(seconds(6));
    listener.silence.hear(5, false);  // peer 5 has not begun the plan yet
    CHECK_FALSE(listener.silence.has_begun(5));
    CHECK(listener.silence.is_silent(4));
    listener.listen(seconds(3));
    CHECK(listener.silence.is_gone(4));
    CHECK_FALSE(listener.silence.is_gone(5));
}

TEST_CASE("a message counts only for the plan that it belongs to") {
    Listener listener(2);
    for (const std::size_t place : {0, 1}) listener.silence.hear(place, true);
    listener.listen(seconds(9));
    CHECK(listener.silence.is_gone(0));
    listener.silence.begin(listener.now);
    CHECK_FALSE(listener.silence.is_silent(0));
    CHECK_FALSE(listener.silence.has_begun(0));
    listener.listen(seconds(7));
    listener.silence.hear(1, true);
    listener.listen(seconds(7));
    CHECK_FALSE(listener.silence.is_gone(0));
}

TEST_CASE("the permitted silence is given in seconds and is limited to a range") {
    CHECK(chosen_silence("60") == seconds(60));
    CHECK(chosen_silence("1") == seconds(3));
    CHECK(chosen_silence("100000") == seconds(3600));
    for (const char* none : {static_cast<const char*>(nullptr), "", "soon", "-5", "8 s"})
        CHECK(chosen_silence(none) == ProcessCrew::kGoneAfter);
}

namespace {

using std::chrono::milliseconds;

// A node with ranks 10, 20, 30, ... Rank 10 leads and receives the messages of the others from `ends`.
struct Household {
    explicit Household(std::size_t size, milliseconds gone_after = milliseconds(60'000)) {
        std::vector<std::uint32_t> numbers;
        std::vector<Descriptor> connections(1);
        for (std::uint32_t place = 0; place < size; ++place) {
            numbers.push_back(10 * (place + 1));
            if (place == 0) continue;
            std::array<int, 2> pair{};
            REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) == 0);
            connections.emplace_back(pair[0]);
            ends.push_back(std::make_unique<Wire<Beat, Order>>(Descriptor(pair[1])));
        }
        ranks = std::make_unique<LocalRanks>(numbers, std::move(connections), gone_after);
    }

    // Send a beat from the rank with this index.
    void say(std::size_t place, const Beat& beat) { ends.at(place - 1)->say(beat); }

    std::unique_ptr<LocalRanks> ranks;
    std::vector<std::unique_ptr<Wire<Beat, Order>>> ends;
};

Beat beat_of(std::uint32_t phase, std::uint64_t operations, std::string_view stage) {
    Beat beat;
    beat.plan = 1;
    beat.phase = phase;
    beat.operations = operations;
    beat.bytes = 10 * operations;
    stage.copy(beat.stage.data(), beat.stage.size() - 1);
    return beat;
}

}  // namespace

TEST_CASE("a node's beat adds up its ranks and names the slowest") {
    Household node(5);
    node.ranks->begin(1, 100, 4);  // the fifth rank has no part in the plan
    Beat done = beat_of(2, 9, kWaiting);
    done.finished_ranks = 1;
    node.say(1, done);
    node.say(2, beat_of(2, 3, "writing"));
    node.say(3, beat_of(1, 50, "closing"));  // still in the previous phase
    node.say(4, beat_of(2, 1000, "writing"));
    node.ranks->hear();
    const Beat own = beat_of(2, 4, "writing");
    const Beat beat = node.ranks->sum(&own);
    CHECK(beat.phase == 2);
    CHECK(beat.operations == 9 + 3 + 4);
    CHECK(beat.bytes == 10 * (9 + 3 + 4));
    CHECK(beat.finished_ranks == 1);
    CHECK(beat.waiting_ranks == 1);
    CHECK(beat.slowest == 103);
    CHECK(beat.slowest_operations == 0);
    CHECK(view_of(beat.stage) == "closing");
    CHECK(beat.loss == Loss::none);
    CHECK(node.ranks->sum(nullptr).operations == 9 + 3);
}

TEST_CASE("a halt, a signal and a failure of any rank apply to the node") {
    Household node(3);
    node.ranks->begin(1, 0, 3);
    Beat halted = beat_of(1, 0, "writing");
    halted.halt = 2;
    halted.signalled = 1;
    node.say(1, halted);
    Beat failed = beat_of(1, 0, "writing");
    std::string_view("MPI_Test: out of luck").copy(failed.failure.data(), failed.failure.size());
    node.say(2, failed);
    node.ranks->hear();
    const Beat beat = node.ranks->sum(nullptr);
    CHECK(beat.halt == 2);
    CHECK(beat.signalled == 1);
    CHECK(beat.loss == Loss::failed);
    CHECK(beat.lost == 30);
    CHECK(view_of(beat.failure) == "MPI_Test: out of luck");
}

TEST_CASE("a rank that ends without a goodbye is lost, one that says goodbye is not") {
    Household node(3);
    node.ranks->begin(1, 0, 3);
    Beat last = beat_of(1, 0, "writing");
    last.leaving = 1;
    node.say(1, last);
    node.ends[0].reset();
    node.ranks->hear();
    CHECK(node.ranks->sum(nullptr).loss == Loss::none);
    node.ends[1].reset();
    node.ranks->hear();
    CHECK(node.ranks->sum(nullptr).loss == Loss::ended);
    CHECK(node.ranks->sum(nullptr).lost == 30);
}

TEST_CASE("silence counts only while a rank has a part in the plan, and not if the leader did not run") {
    constexpr milliseconds kGone{1000};
    Household node(4, kGone);
    node.ranks->begin(1, 0, 3);
    node.say(1, beat_of(0, 0, ""));  // the rank's part of the plan is over
    node.ranks->hear();
    const auto start = LocalRanks::Time::now();
    for (int look = 1; look <= 7; ++look) node.ranks->look_for_silence(start + look * milliseconds(100));
    Beat beat = node.ranks->sum(nullptr);
    CHECK(beat.silent_ranks == 1);
    CHECK(beat.silent[0] == 30);
    CHECK(beat.slowest_silent == 1);
    CHECK(beat.loss == Loss::none);
    for (int look = 8; look <= 12; ++look) node.ranks->look_for_silence(start + look * milliseconds(100));
    beat = node.ranks->sum(nullptr);
    CHECK(beat.loss == Loss::silent);
    CHECK(beat.lost == 30);

    Household held_up(2, kGone);
    held_up.ranks->begin(1, 0, 2);
    held_up.ranks->look_for_silence(LocalRanks::Time::now() + milliseconds(5000));
    CHECK(held_up.ranks->sum(nullptr).loss == Loss::none);
    CHECK(held_up.ranks->sum(nullptr).silent_ranks == 0);
}

TEST_CASE("orders reach every rank of the node") {
    Household node(3);
    node.ranks->say({.plan = 7, .leave = 1});
    for (const auto& end : node.ends) {
        Order heard;
        end->hear([&heard](const Order& order) { heard = order; });
        CHECK(heard.plan == 7);
        CHECK(heard.leave == 1);
    }
}
