// The crew of every process but the first. The leader of a node reports for all its ranks; the others report to it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "crew/connections.hpp"
#include "crew/local_ranks.hpp"
#include "crew/process_crew.hpp"
#include "crew/silence.hpp"

namespace strakes {

class FollowingCrew : public ProcessCrew {
  public:
    FollowingCrew(World& world, int news, std::chrono::milliseconds gone_after)
        : ProcessCrew(world, news), silence_(1, gone_after + kLonger, Time::now()) {}

    void attend(PlanWatch* plan) override;
    // Returns null if this process takes no part in the plan.
    std::unique_ptr<Team> team_for(const PlanRequest& request) override { return make_team(request.plan); }
    [[nodiscard]] bool signalled() const override { return signalled_; }
    void tell_signal() { signalled_ = true; }
    // Announces the exit of this process, so that it does not count as lost.
    virtual void say_goodbye() = 0;

    // Returns whether a plan was announced that this process has not begun.
    [[nodiscard]] bool is_called() const noexcept { return order_.plan > number_; }
    // Receives the request line of the next plan, which is broadcast to all processes.
    [[nodiscard]] std::string take_call();
    [[nodiscard]] bool told_to_leave() const noexcept { return order_.leave != 0; }
    [[nodiscard]] bool told_to_abandon() const noexcept { return order_.abandon != 0; }
    // Returns whether the connection to the leader has ended without an order to leave.
    [[nodiscard]] bool lost() const noexcept { return !is_open() && !told_to_leave(); }
    // Returns whether the leader has been silent for longer than it tolerates from this process. The margin lets the
    // leader report first if only the link between them is down.
    [[nodiscard]] bool hears_nothing() const { return silence_.is_gone(0); }

  protected:
    virtual void hear() = 0;
    void take(const Order& order) {
        order_ = order;
        silence_.hear(0, true);
    }
    // Sends urgent changes at once, other beats once a second.
    virtual void say(const Beat& own) = 0;
    [[nodiscard]] virtual bool is_open() const noexcept = 0;

    Order order_;

  private:
    static constexpr std::chrono::milliseconds kLonger{2000};

    [[nodiscard]] Beat own_beat(const PlanWatch* plan) const;

    Silence silence_;
    bool signalled_ = false;
};

// Makes the crew of a node's leader or of another rank, depending on this process.
[[nodiscard]] std::unique_ptr<FollowingCrew> make_following_crew(World& world, int news, Connections connections,
                                                                 std::chrono::milliseconds gone_after);

}  // namespace strakes
