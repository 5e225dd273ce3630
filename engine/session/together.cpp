// Start-up of a process: exchange introductions, compare clocks, open connections, then run plans.
#include "session/together.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "crew/connections.hpp"
#include "crew/following_crew.hpp"
#include "crew/launched.hpp"
#include "crew/leading_crew.hpp"
#include "protocol/report.hpp"
#include "session/follower.hpp"
#include "session/session.hpp"
#include "system/descriptor.hpp"

namespace strakes {

namespace {

int lead(World& world, const Joining& joining, int news, Connections connections) {
    LeadingCrew crew(world, news, std::move(connections), joining.gone_after);
    joining.with_crew(&crew);
    const int status = Session(joining.input, joining.signals, news, joining.output, crew).run();
    crew.dismiss();
    joining.with_crew(nullptr);
    return status;
}

int follow(World& world, const Joining& joining, int news, Connections connections) {
    const std::unique_ptr<FollowingCrew> crew =
        make_following_crew(world, news, std::move(connections), joining.gone_after);
    joining.with_crew(crew.get());
    const int status = Follower(joining.signals, news, joining.output, *crew).run();
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
