// Ranks that are processes. The first of them holds the session and leads; the others follow what it says.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crew/beat.hpp"
#include "crew/crew.hpp"
#include "crew/members.hpp"
#include "crew/wire.hpp"
#include "crew/world.hpp"

namespace strakes {

class ProcessCrew : public Crew {
  public:
    // `news` is the event descriptor that the watching thread waits for.
    ProcessCrew(World& world, int news) : world_(world), news_(news) {}

    [[nodiscard]] std::optional<Lack> lacks(const Plan& plan) const override;
    void nudge() override;
    [[nodiscard]] std::string host_of(Team::Rank rank) const override;

    // From any thread: this process cannot go on, and nothing else is to be blamed for what follows.
    void fail(const std::string& why);

  protected:
    using Time = std::chrono::steady_clock;

    // Empty while nothing has failed.
    [[nodiscard]] std::string failure() const;
    // The team of a plan; nothing where this process takes no part in it.
    std::unique_ptr<Team> make_team(const Plan& plan);

    World& world_;
    int news_;
    std::vector<Crowd::Rank> ranks_;    // of the plan's ranks in the crowd
    std::unique_ptr<Members> members_;  // of the running plan
    std::uint64_t number_ = 0;          // of the plan in this session

  private:
    mutable std::mutex failure_mutex_;
    std::string failure_;
};

class LeadingCrew final : public ProcessCrew {
  public:
    // `connections` by rank. A process of which nothing is heard for so long has gone: links that fail over need more
    // than the usual time.
    LeadingCrew(World& world, int news, std::vector<Descriptor> connections,
                std::chrono::milliseconds gone_after = kGoneAfter);

    std::unique_ptr<Team> team_for(const PlanRequest& request) override;
    [[nodiscard]] int descriptor() const override { return ready_.get(); }
    void attend(PlanWatch* plan) override;
    void say_heartbeat(Output& output, const std::string& plan_id) override;
    [[nodiscard]] std::optional<Gone> gone() const override { return gone_; }
    [[nodiscard]] bool signalled() const override { return signalled_; }
    void abandon() override;
    // The session is over.
    void dismiss() { say_to_all({.plan = number_, .leave = 1}); }

    // A process that works says something every second.
    static constexpr std::chrono::milliseconds kGoneAfter{5000};

  private:
    struct Other {
        Wire<Order, Beat> wire;
        Time::time_point heard;
        bool leaving = false;
    };

    void hear_all(PlanWatch* plan);
    void hear(Crowd::Rank rank, PlanWatch* plan);
    void look_for_silence(PlanWatch& plan, Time::time_point now);
    void say_to_all(const Order& order);
    void lose(Crowd::Rank rank, std::string what, std::string why, std::string remedy);
    void lose_failed(Crowd::Rank rank, std::string_view why);
    [[nodiscard]] std::optional<Team::Rank> rank_in_plan(Crowd::Rank rank) const;
    const char* lasting(std::string_view stage);

    std::vector<std::unique_ptr<Other>> others_;  // by rank; none for this one
    Descriptor ready_;                            // an epoll of their connections
    std::set<std::string, std::less<>> stages_;   // for ever, since ranks point to them
    Order told_;
    Time::time_point told_at_, looked_at_;
    std::chrono::milliseconds gone_after_, silent_after_;
    std::optional<Gone> gone_;
    bool signalled_ = false;
};

class FollowingCrew final : public ProcessCrew {
  public:
    FollowingCrew(World& world, int news, Descriptor connection);

    // Null where this process takes no part.
    std::unique_ptr<Team> team_for(const PlanRequest& request) override { return make_team(request.plan); }
    [[nodiscard]] int descriptor() const override { return wire_.descriptor(); }
    void attend(PlanWatch* plan) override;
    [[nodiscard]] bool signalled() const override { return signalled_; }
    void tell_signal() { signalled_ = true; }
    // The last word, so that the end is no surprise.
    void say_goodbye();

    // There is a plan that has not begun here.
    [[nodiscard]] bool is_called() const noexcept { return order_.plan > number_; }
    // Takes the next one; its line comes to all.
    [[nodiscard]] std::string take_call();
    [[nodiscard]] bool told_to_leave() const noexcept { return order_.leave != 0; }
    [[nodiscard]] bool told_to_abandon() const noexcept { return order_.abandon != 0; }
    // Rank 0 has gone.
    [[nodiscard]] bool lost() const noexcept { return !wire_.is_open(); }

  private:
    void say(Beat beat);

    Wire<Beat, Order> wire_;
    Order order_;
    Beat said_;
    Time::time_point said_at_;
    bool signalled_ = false;
};

}  // namespace strakes
