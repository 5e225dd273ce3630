// Processes that are not the first: the leader of a node speaks for all ranks there, the others speak to it.
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
    // Null where this process takes no part.
    std::unique_ptr<Team> team_for(const PlanRequest& request) override { return make_team(request.plan); }
    [[nodiscard]] bool signalled() const override { return signalled_; }
    void tell_signal() { signalled_ = true; }
    // The last word, so that the end is no surprise.
    virtual void say_goodbye() = 0;

    // There is a plan that has not begun here.
    [[nodiscard]] bool is_called() const noexcept { return order_.plan > number_; }
    // Takes the next one; its line comes to all.
    [[nodiscard]] std::string take_call();
    [[nodiscard]] bool told_to_leave() const noexcept { return order_.leave != 0; }
    [[nodiscard]] bool told_to_abandon() const noexcept { return order_.abandon != 0; }
    // Who says what to do has gone.
    [[nodiscard]] bool lost() const noexcept { return !is_open() && !told_to_leave(); }
    // Nothing was heard from whoever says what to do, for longer than it would allow this process: where only the way
    // between them is broken, it is the first to speak.
    [[nodiscard]] bool hears_nothing() const { return silence_.is_gone(0); }

  protected:
    virtual void hear() = 0;
    void take(const Order& order) {
        order_ = order;
        silence_.hear(0, true);
    }
    // At once where others must know, else once a second.
    virtual void say(const Beat& own) = 0;
    [[nodiscard]] virtual bool is_open() const noexcept = 0;

    Order order_;

  private:
    static constexpr std::chrono::milliseconds kLonger{2000};

    [[nodiscard]] Beat own_beat(const PlanWatch* plan) const;

    Silence silence_;
    bool signalled_ = false;
};

// As the connections are: of a leader of a node, or of another rank.
[[nodiscard]] std::unique_ptr<FollowingCrew> make_following_crew(World& world, int news, Connections connections,
                                                                 std::chrono::milliseconds gone_after);

}  // namespace strakes
