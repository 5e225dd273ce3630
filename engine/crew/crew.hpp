// The interface to the ranks that run plans: threads of this process, or processes that were started together. Sessions
// and plans obtain teams from it and pass it events for other processes, which a crew of threads ignores.
#pragma once

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

    // Why the crew cannot run a plan, and the key of the plan that asks too much.
    struct Lack {
        Failure failure;
        std::string key;
    };
    [[nodiscard]] virtual std::optional<Lack> lacks(const Plan& plan) const = 0;
    virtual std::unique_ptr<Team> team_for(const PlanRequest& request) = 0;

    // Called by a rank that has raised a halt or finished its timed section.
    virtual void nudge() {}

    // The functions below are for the watching thread.

    // Returns a descriptor that is readable when a message of another process has arrived, or -1.
    [[nodiscard]] virtual int descriptor() const { return -1; }
    // Receives the messages of other processes, and sends them the state of this process in the plan.
    virtual void attend(PlanWatch* /*plan*/) {}
    // Writes a heartbeat message with the ranks that are alive, once a second while a plan runs.
    virtual void say_heartbeat(Output& /*output*/, const std::string& /*plan_id*/) {}
    // A lost process. The plan and the session cannot continue without it.
    struct Gone {
        std::optional<Team::Rank> rank;  // in the running plan, if the process takes part
        std::string host;
        Failure failure;
    };
    [[nodiscard]] virtual std::optional<Gone> gone() const { return std::nullopt; }
    // Returns the host of a rank of the running plan; empty for this host.
    [[nodiscard]] virtual std::string host_of(Team::Rank /*rank*/) const { return {}; }
    // Returns whether another process received a signal to end.
    [[nodiscard]] virtual bool signalled() const { return false; }
    // Ends the other processes at once. The caller must then exit.
    virtual void abandon() {}
};

// All ranks are threads of this process.
class ThreadCrew final : public Crew {
  public:
    [[nodiscard]] std::optional<Lack> lacks(const Plan& plan) const override;
    std::unique_ptr<Team> team_for(const PlanRequest& request) override;
};

}  // namespace strakes
