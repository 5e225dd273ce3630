// A barrier wakes threads one after another, and may wake two on one processor. No thread starts before all are awake.
#include "team/thread_start.hpp"

#include <sched.h>

#include "measure/clock.hpp"

namespace strakes {

namespace {

// Lets the start time reach all threads, which poll for it.
constexpr std::uint64_t kLeadNs = 20'000;

}  // namespace

void ThreadStart::reset() {
    taken_ = {};
    come_ = 0;
    start_ = 0;
}

Start ThreadStart::pass() {
    const Start start{.begun = true, .crowded = crowded_};
    if (threads_ == 1 || crowded_) return start;
    const Clock& clock = Clock::system();
    std::optional<Aside> aside;
    take_processor(aside);
    if (come_.fetch_add(1) + 1 == threads_) start_ = clock.now();
    // A thread that has not arrived may need this processor.
    while (start_ == 0) ::sched_yield();
    clock.wait(start_, kLeadNs);
    return start;
}

void ThreadStart::take_processor(std::optional<Aside>& aside) {
    const std::lock_guard lock(mutex_);
    const Processors mine = Processors::current();
    if (taken_.has_all(mine)) aside.emplace(Processors::allowed(), taken_);
    taken_.add(Processors::current());
}

}  // namespace strakes
