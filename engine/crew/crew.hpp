// The interface to the ranks that run plans: threads of this process, or processes that were started together. A crew
// provides teams for plans and takes events for other processes, which a crew of threads ignores.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "plan/plan.hpp"
#include "protocol/requests.hpp"
#include "system/failure.hpp"
#include "team/team.hpp"

namespace strakes {

class PlanWatch;
class Output;

class Crew {
  public:
    Crew() = default;
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;
    virtual ~Crew() = default;

    struct Lack {
        Failure failure;
        std::string key;
    };
    [[nodiscard]] virtual std::optional<Lack> lacks(const Plan& plan) const = 0;
    virtual std::unique_ptr<Team> team_for(const PlanRequest& request) = 0;

    // Called by a rank that stops the plan on all ranks.
    virtual void nudge() {}

    // The functions below are for the watching thread.

    // Returns a descriptor that is readable when a message of another process has arrived, or -1.
    [[nodiscard]] virtual int descriptor() const { return -1; }
    // Receives the messages of other processes, and sends them the state of this process in the plan.
    virtual void attend(PlanWatch* /*plan*/) {}
    // Writes a heartbeat message with the ranks that are alive, once a second while a plan runs.
    virtual void say_heartbeat(Output& /*output*/, const std::string& /*plan_id*/) {}
    // A lost process. The plan and the session cannot continue without this process.
    struct Gone {
        std::optional<Team::Rank> rank;  // rank in the running plan, if the process takes part
        std::string host;
        Failure failure;
    };
    [[nodiscard]] virtual std::optional<Gone> gone() const { return std::nullopt; }
    // Returns the host of a rank of the running plan; empty for this host.
    [[nodiscard]] virtual std::string host_of(Team::Rank /*rank*/) const { return {}; }
    // Returns whether another process received a signal to end.
    [[nodiscard]] virtual bool signalled() const { return false; }
    // Ends the other processes immediately. The caller must then exit.
    virtual void abandon() {}
};

class ThreadCrew final : public Crew {
  public:
    // Maximum number of threads. They take 240 MiB (59 KiB each, measured) and start within a second.
    static constexpr std::uint32_t kMostThreads = 4096;

    [[nodiscard]] std::optional<Lack> lacks(const Plan& plan) const override {
        if (plan.ranks > kMostThreads) {
            return Lack{{.what = "the plan has too many ranks for one process",
                         .why = std::to_string(plan.ranks) + " ranks; at most " + std::to_string(kMostThreads) +
                                " can be threads of one process",
                         .remedy = "Use fewer ranks, or start them as processes: --launcher mpi."},
                        "team.ranks"};
        }
        if (!plan.ranks_per_node || *plan.ranks_per_node >= plan.ranks) return std::nullopt;
        return Lack{{.what = "there is only one node, but the plan asks for more",
                     .why = "ranks_per_node is " + std::to_string(*plan.ranks_per_node) + " of " +
                            std::to_string(plan.ranks) + " ranks, all of which are threads here",
                     .remedy = "Use a launcher that starts processes on several nodes, or leave ranks_per_node out."},
                    "team.ranks_per_node"};
    }
    std::unique_ptr<Team> team_for(const PlanRequest& request) override {
        const Plan& plan = request.plan;
        return std::make_unique<Team>(plan.ranks, plan.ranks, plan.placement.crowds(plan.ranks));
    }
};

}  // namespace strakes
