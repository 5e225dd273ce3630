// Start-up of a process: exchange introductions, compare clocks, open connections, then run plans.
#include "session/together.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>

#include "crew/connections.hpp"
#include "crew/following_crew.hpp"
#include "crew/launched.hpp"
#include "crew/leading_crew.hpp"
#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "session/plan_run.hpp"
#include "session/session.hpp"
#include "system/descriptor.hpp"

namespace strakes {

namespace {

constexpr int kSayEveryMilliseconds = 1000;
constexpr int kFollowerFailed = 1;
// Ranks other than 1 wait this long before they exit, so that rank 1 can report the silent leader. Ranks notice the
// silence up to a second apart, and launchers kill all processes after one process has ended.
constexpr std::chrono::seconds kLetOneSpeak{2};

class Follower {
  public:
    // `signals` and `news` as for Session. Rank 1 uses `output` to report that the leader is lost.
    Follower(int signals, int news, Output& output, FollowingCrew& crew)
        : signals_(signals),
          news_(news),
          output_(output),
          crew_(crew),
          nowhere_(::open("/dev/null", O_WRONLY | O_CLOEXEC)),
          unheard_(nowhere_.get()) {}

    int run() {
        while (plan_ || !crew_.told_to_leave()) {
            wait();
            if (crew_.told_to_abandon()) ::_exit(kFollowerFailed);
            if (crew_.lost() || (plan_ && crew_.hears_nothing())) end_without_leader();
            if (plan_ && plan_->watch().finished()) {
                plan_->finish();
                plan_.reset();
            }
            // The leader may have announced further plans meanwhile.
            while (!plan_ && crew_.is_called()) begin();
        }
        crew_.say_goodbye();
        return 0;
    }

  private:
    void wait() {
        const int limit = plan_ ? kSayEveryMilliseconds : -1;
        const Events events = wait_for_events(signals_, news_, crew_.descriptor(), -1, -1, limit);
        if (events.signalled) crew_.tell_signal();
        if (events.error != 0) crew_.fail("poll: " + std::system_category().message(events.error));
        crew_.attend(plan_ ? &plan_->watch() : nullptr);
    }
    void begin() {
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
            crew_.attend(&plan_->watch());
    }
    // The leader's output may be lost with the leader, so rank 1 reports the loss.
    [[noreturn]] void end_without_leader() {
        if (plan_ && !plan_->watch().give_up_without_leader(output_, crew_.lost()))
            std::this_thread::sleep_for(crew_.lost() ? std::chrono::seconds(0) : kLetOneSpeak);
        ::_exit(kFollowerFailed);
    }

    int signals_, news_;
    Output& output_;
    FollowingCrew& crew_;
    Descriptor nowhere_;
    Output unheard_;  // discards output, because the leader reports plans
    std::unique_ptr<PlanRun> plan_;
};

int lead(World& world, const Joining& joining, int news, Connections connections) {
    LeadingCrew crew(world, news, std::move(connections), joining.gone_after);
    joining.with_crew(&crew);
    const int status = Session(joining.input, joining.signals, news, joining.output, crew).run();
    crew.dismiss();
    joining.with_crew(nullptr);
    return status;
}

int follow(World& world, const Joining& joining, int news, Connections connections) {
    FollowingCrew crew(world, news, std::move(connections), joining.gone_after);
    joining.with_crew(&crew);
    const int status = Follower(joining.signals, news, joining.output, crew).run();
    joining.with_crew(nullptr);
    return status;
}

}  // namespace

std::chrono::milliseconds chosen_silence(const char* seconds) {
    const auto chosen = seconds != nullptr ? count_from(seconds) : std::nullopt;
    if (!chosen) return ProcessCrew::kGoneAfter;
    return std::clamp(std::chrono::seconds(*chosen), kShortestSilence, kLongestSilence);
}

int run_together(const Joining& joining) {
    Post& post = joining.post;
    const Crowd crowd = Crowd::meet(post, joining.introduction);
    joining.when_known(crowd);
    Clocks clocks(post, crowd);
    Performer performer;
    World world{.performer = performer, .post = post, .crowd = crowd, .clocks = clocks};
    Connections connections = connect_all(world);
    const std::uint64_t uncertainty_ns = world.everybody().most(clocks.uncertainty_ns());
    const Descriptor news(::eventfd(0, EFD_CLOEXEC));
    if (post.rank() == 0) {
        say_hello(joining.output,
                  {.engine = joining.version,
                   .clock = Clock::system().name(),
                   .together = Together{.library = joining.library,
                                        .size = post.size(),
                                        .tasks = joining.tasks,
                                        .nodes = crowd.nodes(),
                                        .clock_uncertainty_s = static_cast<double>(uncertainty_ns) * 1e-9}});
    }
    int status = 0;
    std::thread watching([&] {
        const auto body = post.rank() == 0 ? lead : follow;
        status = body(world, joining, news.get(), std::move(connections));
        performer.dismiss();
    });
    joining.before_plans();
    performer.serve();
    watching.join();
    return status;
}

}  // namespace strakes
