// The crew whose ranks are processes. The first process holds the session and leads; the others follow its orders.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/library_file.hpp"
#include "crew/beat.hpp"
#include "crew/clocks.hpp"
#include "crew/connections.hpp"
#include "crew/crew.hpp"
#include "crew/crowd.hpp"
#include "crew/performer.hpp"
#include "system/placement.hpp"
#include "team/post.hpp"
#include "team/team.hpp"

namespace strakes {

class Members final : public Processes {
  public:
    // `ranks` are the members of the crowd that take part; this process is number `mine` among them.
    Members(Performer& performer, Post& post, const Crowd& crowd, Clocks& clocks, std::vector<Rank> ranks, Rank mine,
            const Placement& placement);

    void perform(std::function<void()> body) override { performer_.perform(std::move(body)); }
    void wait() override { performer_.wait(); }
    bool any(bool mine) override { return circle_.most(mine ? 1 : 0) != 0; }
    Start start_line() override;
    std::uint64_t least(std::uint64_t mine) override { return circle_.least(mine); }
    std::vector<std::string> all(std::string_view mine) override { return circle_.all(mine); }
    void send(Rank to, std::string_view bytes) override { circle_.send(to, bytes); }
    std::string receive(Rank from) override { return circle_.receive(from); }
    [[nodiscard]] Exchange& exchange() override { return *exchange_; }
    [[nodiscard]] LibraryFiles* libraries() override { return libraries_.get(); }
    [[nodiscard]] const Timeline& timeline() const override { return clocks_.timeline(); }
    [[nodiscard]] bool leads_node() const override { return leads_node_; }
    [[nodiscard]] Rank ranks_on_node() const override { return ranks_on_node_; }
    [[nodiscard]] Rank place_on_machine() const override { return on_machine_.mine(); }
    [[nodiscard]] std::size_t nodes() const override { return nodes_; }

  private:
    Performer& performer_;
    Clocks& clocks_;
    std::vector<Rank> ranks_;
    Circle circle_;
    Circle on_machine_;  // the ranks on this machine
    bool leads_node_;
    Rank ranks_on_node_;
    std::size_t nodes_;
    bool crowded_;  // the machine has fewer processors than ranks
    std::unique_ptr<Exchange> exchange_;
    std::unique_ptr<LibraryFiles> libraries_;
};

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
