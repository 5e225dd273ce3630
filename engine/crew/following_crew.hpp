// The crew of every process but the first. It receives orders and sends heartbeats. The leader of a node sends the sum
// of its ranks' heartbeats to the first process. The other processes send their heartbeats to the leader of their node.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "crew/connections.hpp"
#include "crew/local_ranks.hpp"
#include "crew/process_crew.hpp"
#include "crew/silence.hpp"
#include "session/plan_watch.hpp"

namespace strakes {

class FollowingCrew final : public ProcessCrew {
  public:
    FollowingCrew(World& world, int news, Connections connections, std::chrono::milliseconds gone_after)
        : ProcessCrew(world, news),
          leads_(world.crowd.leader_of(world.post.rank()) == world.post.rank()),
          wire_(std::move(connections.up)),
          local_(leads_ ? world.crowd.node_of(world.post.rank()).ranks : std::vector{world.post.rank()},
                 std::move(connections.local), gone_after),
          ready_(::epoll_create1(EPOLL_CLOEXEC)),
          silence_(1, gone_after + kLonger, Time::now()) {
        if (leads_) outlast_silence(wire_.descriptor(), gone_after);
        for (const int descriptor : {wire_.descriptor(), local_.descriptor()}) {
            epoll_event event{.events = EPOLLIN, .data = {}};
            ::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, descriptor, &event);
        }
    }

    [[nodiscard]] int descriptor() const override { return ready_.get(); }

    void attend(PlanWatch* plan) override {
        hear();
        silence_.look(Time::now());
        if (plan != nullptr && order_.plan == number_) plan->hear(order_);
        say(own_beat(plan));
    }
    std::unique_ptr<Team> team_for(const PlanRequest& request) override {
        std::unique_ptr<Team> team = make_team(request.plan);
        const Crowd::Rank rank = world_.post.rank();
        const Part part = part_of(world_.crowd.number_of_node(rank));
        const auto place = static_cast<Team::Rank>(world_.crowd.place_of(rank));
        local_.begin(number_, part.first + place, leads_ ? part.count : place < part.count ? 1 : 0);
        return team;
    }
    [[nodiscard]] bool signalled() const override { return signalled_; }
    void tell_signal() { signalled_ = true; }
    // Announces the exit of this process, so that the process does not count as lost.
    void say_goodbye() {
        said_.leaving = 1;
        wire_.say(said_);
    }

    [[nodiscard]] bool is_called() const noexcept { return order_.plan > number_; }
    // Receives the request of the next plan, which is broadcast to all processes, including those that take no part.
    [[nodiscard]] std::string take_call() {
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
    [[nodiscard]] bool told_to_leave() const noexcept { return order_.leave != 0; }
    [[nodiscard]] bool told_to_abandon() const noexcept { return order_.abandon != 0; }
    [[nodiscard]] bool lost() const noexcept { return !wire_.is_open() && !told_to_leave(); }
    // The limit for the leader's silence is longer than the leader's limit for this process, by kLonger: if only the
    // link between the two processes fails, the leader reports the loss.
    [[nodiscard]] bool hears_nothing() const { return silence_.is_gone(0); }

  private:
    static constexpr std::chrono::milliseconds kLonger{2000}, kSayEvery{1000};
    static constexpr std::chrono::milliseconds kLookEvery{500};

    void hear() {
        wire_.hear([this](const Order& order) {
            order_ = order;
            silence_.hear(0, true);
            local_.say(order);
        });
        local_.hear();
    }
    // Sends urgent changes immediately, other heartbeats once a second.
    void say(const Beat& own) {
        const auto now = Time::now();
        if (own.phase != 0) local_.look_for_silence(now);
        const Beat beat = local_.sum(&own);
        const bool urgent = beat.halt != said_.halt || beat.signalled != said_.signalled || beat.loss != said_.loss ||
                            beat.plan != said_.plan || (beat.phase == 0) != (said_.phase == 0);
        if (!urgent && now - said_at_ < kSayEvery) return;
        said_ = beat;
        said_at_ = now;
        wire_.say(beat);
    }

    [[nodiscard]] Beat own_beat(const PlanWatch* plan) const {
        Beat beat;
        if (plan != nullptr) beat = plan->beat();
        beat.plan = number_;
        beat.signalled = signalled_ ? 1 : 0;
        failure().copy(beat.failure.data(), beat.failure.size() - 1);
        return beat;
    }

    bool leads_;
    Wire<Beat, Order> wire_;
    LocalRanks local_;  // ranks of the node; only this rank if this process does not lead
    Descriptor ready_;  // an epoll descriptor for wire_ and local_
    Order order_;
    Beat said_;
    Time::time_point said_at_;
    Silence silence_;
    bool signalled_ = false;
};

}  // namespace strakes
