// Event loop of a follower: messages from the leader, events of the local ranks, and signals.
#include "session/follower.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <variant>

#include "protocol/requests.hpp"

namespace strakes {

namespace {

constexpr int kSayEveryMilliseconds = 1000;
constexpr int kFollowerFailed = 1;
// Ranks other than 1 wait this long before they exit, so that rank 1 can report the silent leader. Ranks notice the
// silence up to a second apart, and launchers kill all processes once one has ended.
constexpr std::chrono::seconds kLetOneSpeak{2};

}  // namespace

Follower::Follower(int signals, int news, Output& output, FollowingCrew& crew)
    : signals_(signals),
      news_(news),
      output_(output),
      crew_(crew),
      nowhere_(::open("/dev/null", O_WRONLY | O_CLOEXEC)),
      unheard_(nowhere_.get()) {}

int Follower::run() {
    while (plan_ || !crew_.told_to_leave()) {
        wait();
        if (crew_.told_to_abandon()) ::_exit(kFollowerFailed);
        if (crew_.lost() || (plan_ && crew_.hears_nothing())) end_without_leader();
        if (plan_) plan_->watch().look_here();
        if (plan_ && plan_->watch().finished()) {
            plan_->finish();
            plan_.reset();
        }
        // More plans may have been announced meanwhile.
        while (!plan_ && crew_.is_called()) begin();
    }
    crew_.say_goodbye();
    return 0;
}

void Follower::wait() {
    constexpr short kReadable = POLLIN;
    std::array<pollfd, 3> ready{pollfd{.fd = signals_, .events = kReadable, .revents = 0},
                                pollfd{.fd = news_, .events = kReadable, .revents = 0},
                                pollfd{.fd = crew_.descriptor(), .events = kReadable, .revents = 0}};
    static_cast<void>(::poll(ready.data(), ready.size(), plan_ ? kSayEveryMilliseconds : -1));
    if (ready[0].revents != 0) {
        signalfd_siginfo info{};
        static_cast<void>(::read(signals_, &info, sizeof info));
        crew_.tell_signal();
    }
    if (ready[1].revents != 0) {
        std::uint64_t count = 0;
        static_cast<void>(::read(news_, &count, sizeof count));
    }
    crew_.attend(plan_ ? &plan_->watch() : nullptr);
}

void Follower::begin() {
    Request request = parse_followed(crew_.take_call());
    if (const auto* refused = std::get_if<RefusedRequest>(&request)) {
        crew_.fail("this engine is not the same as that of rank 0: it refuses the plan: " + refused->what);
        return crew_.attend(nullptr);
    }
    auto& plan = std::get<PlanRequest>(request);
    auto team = crew_.team_for(plan);
    if (!team) return crew_.attend(nullptr);
    plan_ = std::make_unique<PlanRun>(std::move(plan), unheard_, crew_, std::move(team), news_);
    if (plan_->start())
        plan_.reset();
    else
        crew_.attend(plan_ ? &plan_->watch() : nullptr);
}

// The leader's output may be lost with the leader, so rank 1 reports the loss.
void Follower::end_without_leader() {
    if (plan_ && !plan_->watch().give_up_without_leader(output_, crew_.lost()))
        std::this_thread::sleep_for(crew_.lost() ? std::chrono::seconds(0) : kLetOneSpeak);
    ::_exit(kFollowerFailed);
}

}  // namespace strakes
