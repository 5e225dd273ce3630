// A barrier wakes threads one after the other, and not always each on a processor of its own: nobody goes before all
// are awake.
#include "team/thread_start.hpp"

#include <sched.h>

#include "measure/clock.hpp"

namespace strakes {

namespace {

// For the word of the last to reach the others, who look for it all the time.
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
    // Who has not come yet may be waiting for this very processor.
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
