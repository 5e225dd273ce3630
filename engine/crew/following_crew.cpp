// Receives orders and sends heartbeats.
#include "crew/following_crew.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include "session/plan_watch.hpp"

namespace strakes {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSayEvery{1000};
constexpr milliseconds kLookEvery{500};  // all ranks of a node wake up for this while a plan is announced

// A rank that sends to the leader of its node.
class LocalCrew final : public FollowingCrew {
  public:
    LocalCrew(World& world, int news, Descriptor connection, milliseconds gone_after)
        : FollowingCrew(world, news, gone_after), wire_(std::move(connection)) {}

    [[nodiscard]] int descriptor() const override { return wire_.descriptor(); }
    void say_goodbye() override {
        said_.leaving = 1;
        wire_.say(said_);
    }

  protected:
    void hear() override {
        wire_.hear([this](const Order& order) { take(order); });
    }
    void say(const Beat& own) override {
        const auto now = Time::now();
        const bool urgent = own.halt != said_.halt || own.finished_phases != said_.finished_phases ||
                            own.signalled != said_.signalled || own.failure != said_.failure ||
                            own.plan != said_.plan || (own.phase == 0) != (said_.phase == 0);
        if (!urgent && now - said_at_ < kSayEvery) return;
        said_ = own;
        said_at_ = now;
        wire_.say(own);
    }
    [[nodiscard]] bool is_open() const noexcept override { return wire_.is_open(); }

  private:
    Wire<Beat, Order> wire_;
    Beat said_;
    Time::time_point said_at_;
};

// The leader of a node.
class NodeCrew final : public FollowingCrew {
  public:
    NodeCrew(World& world, int news, Connections connections, milliseconds gone_after)
        : FollowingCrew(world, news, gone_after),
          wire_(std::move(connections.up)),
          local_(world.crowd.node_of(world.post.rank()).ranks, std::move(connections.local), gone_after),
          ready_(::epoll_create1(EPOLL_CLOEXEC)) {
        outlast_silence(wire_.descriptor(), gone_after);
        for (const int descriptor : {wire_.descriptor(), local_.descriptor()}) {
            epoll_event event{.events = EPOLLIN, .data = {}};
            ::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, descriptor, &event);
        }
    }

    [[nodiscard]] int descriptor() const override { return ready_.get(); }
    std::unique_ptr<Team> team_for(const PlanRequest& request) override {
        std::unique_ptr<Team> team = FollowingCrew::team_for(request);
        const Part part = part_of(world_.crowd.number_of_node(world_.post.rank()));
        local_.begin(number_, part.first, part.count);
        return team;
    }
    void say_goodbye() override {
        said_.leaving = 1;
        wire_.say(said_);
    }

  protected:
    void hear() override {
        wire_.hear([this](const Order& order) {
            take(order);
            local_.say(order);
        });
        local_.hear();
    }
    void say(const Beat& own) override {
        const auto now = Time::now();
        if (own.phase != 0) local_.look_for_silence(now);
        const NodeBeat node = local_.sum(&own);
        const bool urgent = node.halt != said_.halt || node.finished_phases != said_.finished_phases ||
                            node.signalled != said_.signalled || node.loss != said_.loss || node.plan != said_.plan ||
                            (node.phase == 0) != (said_.phase == 0);
        if (!urgent && now - said_at_ < kSayEvery) return;
        said_ = node;
        said_at_ = now;
        wire_.say(node);
    }
    [[nodiscard]] bool is_open() const noexcept override { return wire_.is_open(); }

  private:
    Wire<NodeBeat, Order> wire_;
    LocalRanks local_;
    Descriptor ready_;  // an epoll descriptor for both
    NodeBeat said_;
    Time::time_point said_at_;
};

}  // namespace

std::unique_ptr<FollowingCrew> make_following_crew(World& world, int news, Connections connections,
                                                   milliseconds gone_after) {
    if (world.crowd.leader_of(world.post.rank()) == world.post.rank())
        return std::make_unique<NodeCrew>(world, news, std::move(connections), gone_after);
    return std::make_unique<LocalCrew>(world, news, std::move(connections.up), gone_after);
}

Beat FollowingCrew::own_beat(const PlanWatch* plan) const {
    Beat beat;
    if (plan != nullptr) beat = plan->beat();
    beat.plan = number_;
    beat.signalled = signalled_ ? 1 : 0;
    failure().copy(beat.failure.data(), beat.failure.size() - 1);
    return beat;
}

void FollowingCrew::attend(PlanWatch* plan) {
    hear();
    silence_.look(Time::now());
    if (plan != nullptr && order_.plan == number_) plan->hear(order_);
    say(own_beat(plan));
}

// Takes one plan. Several may be waiting, since plans without this process do not wait for it.
std::string FollowingCrew::take_call() {
    std::string line;
    silence_.begin(Time::now());
    silence_.hear(0, true);
    world_.performer.perform([&] { line = world_.everybody().from_first({}); });
    world_.performer.wait(kLookEvery, [this] {
        hear();
        silence_.look(Time::now());
        if (lost() || told_to_abandon() || hears_nothing()) ::_exit(1);
        say(own_beat(nullptr));
    });
    ++number_;
    return line;
}

}  // namespace strakes
