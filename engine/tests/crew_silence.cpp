// Detection of silent processes, as opposed to a listener that did not run.
#include <doctest/doctest.h>

#include <chrono>

#include "crew/process_crew.hpp"
#include "crew/silence.hpp"
#include "session/together.hpp"

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
    listener.silence.hear(5, false);  // it has not begun the plan yet
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
