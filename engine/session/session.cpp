// Main loop: reads requests, starts plans and watches running plans. The ranks run in other threads.
#include "session/session.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>
#include <utility>

#include "system/failure.hpp"

namespace strakes {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kHeartbeatEvery{1000};
// A cancelled plan is abandoned after kPatience without progress: a large transfer to a slow file system may take this
// long. After limit_s or a signal, or if the caller has ended, kPatienceOverLimit applies.
constexpr seconds kPatienceOverLimit{5}, kPatience{20};
constexpr milliseconds kPauseAfterError{100};
constexpr int kFailed = 1, kRefused = 2, kSignalled = 130;

}  // namespace

Events wait_for_events(int signals, int news, int crew, int input, int output, int limit_ms) {
    std::array<pollfd, 5> ready{};
    for (std::size_t i = 0; const int descriptor : {signals, news, crew, input, output})
        ready.at(i++) = {.fd = descriptor, .events = POLLIN, .revents = 0};
    ready[4].events = 0;  // only POLLERR and POLLHUP
    Events events;
    if (::poll(ready.data(), ready.size(), limit_ms) < 0 && errno != EINTR) {
        events.error = errno;
        std::this_thread::sleep_for(kPauseAfterError);
    }
    signalfd_siginfo info{};
    std::uint64_t count = 0;
    events.signalled = ready[0].revents != 0;
    events.readable = ready[3].revents != 0;
    events.unheard = ready[4].revents != 0;
    if (events.signalled) static_cast<void>(::read(signals, &info, sizeof info));
    if (ready[1].revents != 0) static_cast<void>(::read(news, &count, sizeof count));
    return events;
}

int Session::run() {
    while (plan_ || !waiting_.empty() || (input_open_ && !leaving_)) {
        if (!plan_ && !waiting_.empty())
            begin_next();
        else
            wait();
    }
    if (signalled_) return kSignalled;
    if (output_.broken() || last_ == PlanStatus::failed) return kFailed;
    return last_ == PlanStatus::refused ? kRefused : 0;
}

void Session::wait() {
    const Events events = wait_for_events(signals_, news_, crew_.descriptor(), input_open_ ? input_ : -1,
                                          leaving_ ? -1 : output_.descriptor(), milliseconds_to_next_look());
    if (events.error != 0 && plan_ && !leaving_) plan_->watch().fail(call_failure("poll", "", events.error));
    signalled_ |= events.signalled;
    if (events.signalled || events.unheard || events.error != 0) leave();
    if (events.readable) read_input();
    attend_crew();
    if (plan_ && plan_->watch().finished())
        finish_plan();
    else if (plan_)
        watch();
}

void Session::attend_crew() {
    crew_.attend(plan_ ? &plan_->watch() : nullptr);
    if (crew_.signalled() && !leaving_) {
        signalled_ = true;
        leave();
    }
    if (const auto gone = crew_.gone()) {
        if (plan_ && !plan_->watch().finished()) {
            crew_.say_heartbeat(output_, plan_->request().id);
            plan_->watch().give_up(*gone);
        }
        abandon();
    }
}

// Exit without joining threads that may be stuck in a system call.
void Session::abandon() {
    crew_.abandon();
    ::_exit(kFailed);
}

void Session::read_input() {
    std::array<char, 65536> piece;
    const ssize_t size = ::read(input_, piece.data(), piece.size());
    if (size < 0 && errno == EINTR) return;
    if (size <= 0) {
        input_open_ = false;
        lines_.end();
    } else {
        lines_.add({piece.data(), static_cast<std::size_t>(size)});
    }
    while (const auto line = lines_.next()) {
        if (line->find_first_not_of(" \t\r") == std::string::npos) continue;
        take(*line == LineBuffer::kTooLong ? RefusedRequest{{}, "the line is too long", {}, "Send at most 4 MiB."}
                                           : parse_request(*line));
    }
}

void Session::take(Request request) {
    if (const auto* cancelled = std::get_if<CancelRequest>(&request))
        cancel(cancelled->id);
    else if (!leaving_)
        waiting_.push_back(std::move(request));
}

// An unknown id is not an error: the plan may have ended before the message arrived.
void Session::cancel(const std::string& id) {
    if (plan_ && plan_->request().id == id) {
        cancelled_ = true;
        last_heartbeat_ = Time::now();
        plan_->watch().cancel();
    }
    const auto names = [&id](const Request& request) {
        const auto* plan = std::get_if<PlanRequest>(&request);
        return plan != nullptr && plan->id == id;
    };
    if (std::erase_if(waiting_, names) > 0) Report(output_, id).done(PlanStatus::cancelled, true, {});
}

void Session::leave() {
    leaving_ = true;
    for (const Request& request : std::exchange(waiting_, {}))
        if (const auto* plan = std::get_if<PlanRequest>(&request))
            Report(output_, plan->id).done(PlanStatus::cancelled, true, {});
    if (plan_) cancel(plan_->request().id);
}

void Session::begin_next() {
    Request request = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto* refused = std::get_if<RefusedRequest>(&request)) return refuse(*refused);
    auto& plan = std::get<PlanRequest>(request);
    if (plan.check) {
        Report(output_, plan.id).done(PlanStatus::ok, true, {});
        last_ = PlanStatus::ok;
        return;
    }
    auto team = crew_.team_for(plan);
    plan_ = std::make_unique<PlanRun>(std::move(plan), output_, crew_, std::move(team), news_);
    const auto now = Time::now();
    limit_ = now + std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(plan_->request().limit_s));
    next_progress_ = now + progress_every();
    next_crew_heartbeat_ = now + kHeartbeatEvery;
    over_limit_ = cancelled_ = false;
    if (const auto status = plan_->start()) {
        last_ = status;
        plan_.reset();
    }
}

void Session::refuse(const RefusedRequest& request) {
    Report report(output_, request.id);
    report.error({.what = request.what, .why = request.why, .remedy = request.remedy}, {.key = request.key});
    report.done(PlanStatus::refused, true, {});
    last_ = PlanStatus::refused;
}

void Session::finish_plan() {
    last_ = plan_->finish();
    plan_.reset();
}

void Session::watch() {
    const auto now = Time::now();
    if (now >= next_progress_) {
        plan_->watch().say_progress();
        next_progress_ = now + progress_every();
    }
    if (now >= next_crew_heartbeat_) {
        crew_.say_heartbeat(output_, plan_->request().id);
        next_crew_heartbeat_ = now + kHeartbeatEvery;
    }
    if (output_.broken() && !leaving_) leave();
    if (now >= limit_ && !over_limit_) {
        over_limit_ = true;
        last_heartbeat_ = now;
        plan_->watch().cancel_over_limit();
    }
    if (!over_limit_ && !cancelled_) return;
    if (const std::uint64_t heartbeat = plan_->watch().heartbeat(); heartbeat != heartbeat_) {
        heartbeat_ = heartbeat;
        last_heartbeat_ = now;
    }
    if (now - last_heartbeat_ < (over_limit_ || leaving_ ? kPatienceOverLimit : kPatience)) return;
    plan_->watch().give_up();
    abandon();
}

Session::Time::duration Session::progress_every() const {
    return std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(plan_->request().progress_s));
}

int Session::milliseconds_to_next_look() const {
    if (!plan_) return -1;
    auto next = std::min(next_progress_, next_crew_heartbeat_);
    if (!over_limit_) next = std::min(next, limit_);
    const auto left = std::chrono::ceil<milliseconds>(next - Time::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, kHeartbeatEvery.count()));
}

}  // namespace strakes
