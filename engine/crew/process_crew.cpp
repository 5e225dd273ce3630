// Teams of processes, and what the leader and the followers say to each other.
#include "crew/process_crew.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "session/plan_watch.hpp"
#include "workload/progress.hpp"

namespace strakes {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSayEvery{1000};
constexpr milliseconds kLookEvery{200};
constexpr const char* kLookThere =
    "Find out on that node what ended or stopped it (the kernel log says when memory ran out), and then run it again.";

}  // namespace

std::optional<Crew::Lack> ProcessCrew::lacks(const Plan& plan) const {
    const std::size_t there = world_.crowd.members_for(plan).size();
    if (there >= plan.ranks) return std::nullopt;
    const bool per_node = plan.ranks_per_node && *plan.ranks_per_node * world_.crowd.nodes().size() < plan.ranks;
    std::string why = std::to_string(world_.crowd.size()) + " processes on " +
                      std::to_string(world_.crowd.nodes().size()) + " nodes were started";
    if (plan.ranks_per_node) why += ", of which " + std::to_string(there) + " fit into ranks_per_node";
    return Lack{{.what = "the plan asks for " + std::to_string(plan.ranks) + " ranks, which are more than there are",
                 .path = {},
                 .operation = {},
                 .why = std::move(why),
                 .error_name = {},
                 .remedy = per_node ? "Use more hosts (--hosts), or a larger ranks_per_node."
                                    : "Start more processes (--ranks), or use fewer ranks in the plan."},
                per_node ? "team.ranks_per_node" : "team.ranks"};
}

void ProcessCrew::nudge() {
    constexpr std::uint64_t kOne = 1;
    static_cast<void>(::write(news_, &kOne, sizeof kOne));
}

void ProcessCrew::fail(const std::string& why) {
    {
        const std::lock_guard lock(failure_mutex_);
        if (failure_.empty()) failure_ = why;
    }
    nudge();
}

std::string ProcessCrew::failure() const {
    const std::lock_guard lock(failure_mutex_);
    return failure_;
}

std::string ProcessCrew::host_of(Team::Rank rank) const {
    return rank < ranks_.size() ? world_.crowd.node_of(ranks_[rank]).host : std::string();
}

std::unique_ptr<Team> ProcessCrew::make_team(const Plan& plan) {
    ranks_ = world_.crowd.members_for(plan);
    const auto here = std::ranges::find(ranks_, world_.post.rank());
    if (here == ranks_.end()) return nullptr;
    const auto mine = static_cast<Team::Rank>(here - ranks_.begin());
    members_ = std::make_unique<Members>(world_.performer, world_.post, world_.crowd, world_.clocks, ranks_, mine);
    return std::make_unique<Team>(static_cast<Team::Rank>(ranks_.size()), mine, *members_);
}

LeadingCrew::LeadingCrew(World& world, int news, std::vector<Descriptor> connections,
                         std::chrono::milliseconds gone_after)
    : ProcessCrew(world, news),
      ready_(::epoll_create1(EPOLL_CLOEXEC)),
      gone_after_(gone_after),
      silent_after_(gone_after * 3 / 5) {
    const auto now = Time::now();
    for (std::uint32_t rank = 0; rank < connections.size(); ++rank) {
        others_.push_back(nullptr);
        if (!connections[rank]) continue;
        epoll_event event{.events = EPOLLIN, .data = {.u32 = rank}};
        ::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, connections[rank].get(), &event);
        others_.back() =
            std::make_unique<Other>(Other{.wire = Wire<Order, Beat>(std::move(connections[rank])), .heard = now});
    }
}

std::unique_ptr<Team> LeadingCrew::team_for(const PlanRequest& request) {
    if (lacks(request.plan)) return make_team({.seed = 0, .ranks = 1, .ranks_per_node = {}, .phases = {}});
    ++number_;
    say_to_all({.plan = number_});
    const auto now = Time::now();
    for (const auto& other : others_)
        if (other) other->heard = now;
    world_.performer.perform([&] { static_cast<void>(world_.everybody().from_first(request.line)); });
    // Without all of them there is no plan whose error this could be.
    world_.performer.wait(kLookEvery, [this] {
        hear_all(nullptr);
        if (!gone_) return;
        std::fprintf(stderr, "strakes-engine-mpi: %s: %s\n", gone_->failure.what.c_str(), gone_->failure.why.c_str());
        abandon();
        ::_exit(1);
    });
    return make_team(request.plan);
}

void LeadingCrew::hear_all(PlanWatch* plan) {
    std::array<epoll_event, 64> ready{};
    // Level-triggered: what does not fit is there the next time.
    const int count = ::epoll_wait(ready_.get(), ready.data(), static_cast<int>(ready.size()), 0);
    for (int i = 0; i < count; ++i) hear(ready.at(static_cast<std::size_t>(i)).data.u32, plan);
    if (const std::string mine = failure(); !mine.empty()) lose_failed(world_.post.rank(), mine);
}

void LeadingCrew::attend(PlanWatch* plan) {
    const auto now = Time::now();
    hear_all(plan);
    if (plan == nullptr) return;
    look_for_silence(*plan, now);
    Order order = plan->order();
    order.plan = number_;
    const bool changed = std::memcmp(&order, &told_, sizeof order) != 0;
    if (!changed && now - told_at_ < kSayEvery) return;
    told_ = order;
    told_at_ = now;
    say_to_all(order);
}

void LeadingCrew::hear(Crowd::Rank rank, PlanWatch* plan) {
    Other& other = *others_[rank];
    const auto place = rank_in_plan(rank);
    other.wire.hear([&](const Beat& beat) {
        other.heard = Time::now();
        other.leaving = beat.leaving != 0;
        signalled_ |= beat.signalled != 0;
        const std::string_view failed(beat.failure.data(), ::strnlen(beat.failure.data(), beat.failure.size()));
        if (!failed.empty()) lose_failed(rank, failed);
        const std::string_view stage(beat.stage.data(), ::strnlen(beat.stage.data(), beat.stage.size()));
        if (plan != nullptr && place && beat.plan == number_) plan->hear(*place, beat, lasting(stage));
    });
    if (other.wire.is_open()) return;
    ::epoll_ctl(ready_.get(), EPOLL_CTL_DEL, other.wire.descriptor(), nullptr);
    if (!other.leaving)
        lose(rank, "a rank is gone", "it ended without a message: it was killed, or it crashed", kLookThere);
}

// Where this thread itself was held up, nobody else is blamed for it.
void LeadingCrew::look_for_silence(PlanWatch& plan, Time::time_point now) {
    const bool held_up = now - std::exchange(looked_at_, now) > silent_after_ / 2;
    for (Team::Rank rank = 0; rank < ranks_.size(); ++rank) {
        Other* other = others_[ranks_[rank]].get();
        if (other == nullptr) continue;
        if (held_up) other->heard = now;
        plan.set_silent(rank, now - other->heard > silent_after_);
        if (now - other->heard > gone_after_) {
            lose(ranks_[rank], "a rank does not answer",
                 "nothing was heard from it for " +
                     std::to_string(std::chrono::round<std::chrono::seconds>(gone_after_).count()) +
                     " s (STRAKES_SILENCE_S): it was stopped, or its node hangs or cannot be reached",
                 kLookThere);
        }
    }
}

void LeadingCrew::lose_failed(Crowd::Rank rank, std::string_view why) {
    lose(rank, "a rank cannot go on", std::string(why),
         "The file system has no part in this. Look at MPI and its network on that node, and then run it again.");
}

void LeadingCrew::lose(Crowd::Rank rank, std::string what, std::string why, std::string remedy) {
    if (gone_) return;
    const std::string& host = world_.crowd.node_of(rank).host;
    gone_ = Gone{.rank = rank_in_plan(rank),
                 .host = host,
                 .failure = {.what = std::move(what),
                             .path = {},
                             .operation = {},
                             .why = "process " + std::to_string(world_.crowd.pid_of(rank)) + " on " + host + " (rank " +
                                    std::to_string(rank) + " of those started): " + std::move(why),
                             .error_name = {},
                             .remedy = std::move(remedy)}};
}

std::optional<Team::Rank> LeadingCrew::rank_in_plan(Crowd::Rank rank) const {
    const auto place = std::ranges::find(ranks_, rank);
    if (place == ranks_.end()) return std::nullopt;
    return static_cast<Team::Rank>(place - ranks_.begin());
}

// Where a rank waits is recognised by where the text stands.
const char* LeadingCrew::lasting(std::string_view stage) {
    if (stage == kWaiting) return kWaiting;
    auto place = stages_.find(stage);
    if (place == stages_.end()) place = stages_.emplace(stage).first;
    return place->c_str();
}

// Launchers lose what a process says right before its end.
void LeadingCrew::abandon() {
    std::this_thread::sleep_for(kLookEvery);
    say_to_all({.plan = number_, .abandon = 1});
    std::this_thread::sleep_for(kLookEvery);
}

void LeadingCrew::say_to_all(const Order& order) {
    for (const auto& other : others_)
        if (other) other->wire.say(order);
}

void LeadingCrew::say_heartbeat(Output& output, const std::string& plan_id) {
    Heartbeat heartbeat{.plan_id = plan_id, .alive = {0}, .silent = {}, .gone = {}};
    const auto now = Time::now();
    for (Crowd::Rank rank = 1; rank < others_.size(); ++rank) {
        const Other& other = *others_[rank];
        auto& list = !other.wire.is_open()                                     ? heartbeat.gone
                     : now - other.heard > silent_after_ && rank_in_plan(rank) ? heartbeat.silent
                                                                               : heartbeat.alive;
        list.push_back(rank);
    }
    strakes::say_heartbeat(output, heartbeat);
}

FollowingCrew::FollowingCrew(World& world, int news, Descriptor connection)
    : ProcessCrew(world, news), wire_(std::move(connection)) {}

void FollowingCrew::attend(PlanWatch* plan) {
    wire_.hear([this](const Order& order) { order_ = order; });
    if (plan != nullptr && order_.plan == number_) plan->hear(order_);
    say(plan != nullptr ? plan->beat() : Beat{});
}

void FollowingCrew::say(Beat beat) {
    beat.plan = number_;
    beat.signalled = signalled_ ? 1 : 0;
    failure().copy(beat.failure.data(), beat.failure.size() - 1);
    const auto now = Time::now();
    // What has been done so far goes along; what others must know at once does not wait.
    const bool urgent = beat.halt != said_.halt || beat.finished_phases != said_.finished_phases ||
                        beat.signalled != said_.signalled || beat.failure != said_.failure || beat.plan != said_.plan;
    if (!urgent && now - said_at_ < kSayEvery) return;
    said_ = beat;
    said_at_ = now;
    wire_.say(beat);
}

void FollowingCrew::say_goodbye() {
    said_.leaving = 1;
    wire_.say(said_);
}

// One of them: several may have come by now, since a plan of other ranks does not wait for this one.
std::string FollowingCrew::take_call() {
    ++number_;
    std::string line;
    world_.performer.perform([&] { line = world_.everybody().from_first({}); });
    world_.performer.wait(kLookEvery, [this] {
        wire_.hear([this](const Order& order) { order_ = order; });
        if (lost() || told_to_abandon()) ::_exit(1);
        if (!failure().empty()) say({});
    });
    return line;
}

}  // namespace strakes
