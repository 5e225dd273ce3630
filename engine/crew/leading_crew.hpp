// The crew of the first process. It receives heartbeats from the leaders of nodes and from the ranks of this node, and
// sends orders to them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "crew/connections.hpp"
#include "crew/local_ranks.hpp"
#include "crew/process_crew.hpp"
#include "crew/silence.hpp"

namespace strakes {

class LeadingCrew final : public ProcessCrew {
  public:
    // A process or a node counts as lost after a silence of `gone_after`. Links that fail over may need more than the
    // default.
    LeadingCrew(World& world, int news, Connections connections, std::chrono::milliseconds gone_after = kGoneAfter);
    ~LeadingCrew() override;
    LeadingCrew(const LeadingCrew&) = delete;
    LeadingCrew& operator=(const LeadingCrew&) = delete;

    std::unique_ptr<Team> team_for(const PlanRequest& request) override;
    [[nodiscard]] int descriptor() const override { return ready_.get(); }
    void attend(PlanWatch* plan) override;
    void say_heartbeat(Output& output, const std::string& plan_id) override;
    [[nodiscard]] std::optional<Gone> gone() const override { return gone_; }
    [[nodiscard]] bool signalled() const override { return signalled_; }
    void abandon() override;
    // Orders all processes to leave at the end of the session.
    void dismiss() { say_to_all({.plan = number_, .leave = 1}); }

  private:
    struct OtherNode {
        Wire<Order, NodeBeat> wire;
        NodeBeat beat;
    };

    void hear_all(PlanWatch* plan);
    void hear(std::size_t node, PlanWatch* plan);
    void hear_own_node(PlanWatch* plan);
    void wait_for_call();
    void look_for_silence(PlanWatch& plan, Time::time_point now);
    [[nodiscard]] bool is_silent(std::size_t node) const;
    void say_to_all(const Order& order);
    void say_told();
    void tell_again();
    void take_loss(const NodeBeat& beat);
    void lose(Crowd::Rank rank, Loss loss, std::string_view why);

    std::vector<std::unique_ptr<OtherNode>> nodes_;  // by number; null for this node
    LocalRanks local_;
    Descriptor ready_;  // an epoll descriptor for their connections
    Order told_;
    std::mutex telling_;  // protects told_, over_ and sends on the connections
    std::condition_variable told_all_;
    bool over_ = false;
    std::thread teller_;
    Time::time_point looked_at_;
    std::chrono::milliseconds gone_after_;
    Silence silence_;  // of other nodes
    std::optional<Gone> gone_;
    bool signalled_ = false;
};

}  // namespace strakes
