// The crew whose ranks are processes. The first process holds the session and leads; the others follow its orders.
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
    // Default silence after which a process counts as lost. A working process sends every second, and a node that hangs
    // is detected in less than 10 s.
    static constexpr std::chrono::milliseconds kGoneAfter{8000};

    // `news` is the event descriptor that the watching thread waits for.
    ProcessCrew(World& world, int news) : world_(world), news_(news) {}

    [[nodiscard]] std::optional<Lack> lacks(const Plan& plan) const override;
    void nudge() override;
    [[nodiscard]] std::string host_of(Team::Rank rank) const override;

    // Reports that this process cannot continue. The first reason counts. May be called by any thread.
    void fail(const std::string& why);

  protected:
    using Time = std::chrono::steady_clock;

    // Returns the reason given to fail(), or an empty string.
    [[nodiscard]] std::string failure() const;
    // Returns the team of a plan, or null if this process takes no part in it.
    std::unique_ptr<Team> make_team(const Plan& plan);
    // The ranks of the plan on a node, which are the first processes of the node.
    struct Part {
        Team::Rank first = 0, count = 0;
    };
    [[nodiscard]] Part part_of(std::size_t node) const { return parts_[node]; }
    [[nodiscard]] std::optional<Team::Rank> rank_in_plan(Crowd::Rank rank) const;

    World& world_;
    int news_;
    std::vector<Crowd::Rank> ranks_;    // number in the crowd, by rank of the plan
    std::unique_ptr<Members> members_;  // of the running plan
    std::uint64_t number_ = 0;          // of the plan in this session

  private:
    std::vector<Part> parts_;  // by node
    mutable std::mutex failure_mutex_;
    std::string failure_;
};

}  // namespace strakes
