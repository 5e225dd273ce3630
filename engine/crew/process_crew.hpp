// Ranks that are processes. The first of them holds the session and leads; the others follow what it says.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "crew/beat.hpp"
#include "crew/crew.hpp"
#include "crew/members.hpp"
#include "crew/world.hpp"

namespace strakes {

class ProcessCrew : public Crew {
  public:
    // A process that works says something every second. Of a node that hangs this is known in less than 10 s.
    static constexpr std::chrono::milliseconds kGoneAfter{8000};

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
    // The ranks of the plan that are on a node: the first ones of those started there.
    struct Part {
        Team::Rank first = 0, count = 0;
    };
    [[nodiscard]] Part part_of(std::size_t node) const { return parts_[node]; }
    [[nodiscard]] std::optional<Team::Rank> rank_in_plan(Crowd::Rank rank) const;

    World& world_;
    int news_;
    std::vector<Crowd::Rank> ranks_;    // of the plan's ranks in the crowd
    std::unique_ptr<Members> members_;  // of the running plan
    std::uint64_t number_ = 0;          // of the plan in this session

  private:
    std::vector<Part> parts_;  // by node
    mutable std::mutex failure_mutex_;
    std::string failure_;
};

}  // namespace strakes
