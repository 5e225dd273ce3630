// Who performs plans: threads of this process, or the processes that were started with it. Session and plans ask it for
// teams and tell it what others have to know; the threads' crew has nobody to tell.
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

    // Why it cannot perform a plan, and the key of the plan that is at fault.
    struct Lack {
        Failure failure;
        std::string key;
    };
    [[nodiscard]] virtual std::optional<Lack> lacks(const Plan& plan) const = 0;
    virtual std::unique_ptr<Team> team_for(const PlanRequest& request) = 0;

    // From a rank: it has raised a halt or finished its timed section.
    virtual void nudge() {}

    // For the watching thread.
    // Readable when another process has something to say.
    [[nodiscard]] virtual int descriptor() const { return -1; }
    // Hears what the others say, and tells them what this plan's ranks here have to say.
    virtual void attend(PlanWatch* /*plan*/) {}
    // Once a second while a plan runs: who is alive.
    virtual void say_heartbeat(Output& /*output*/, const std::string& /*plan_id*/) {}
    // A process that has gone: the plan and the session cannot go on then.
    struct Gone {
        std::optional<Team::Rank> rank;  // in the running plan, where it takes part
        std::string host;
        Failure failure;
    };
    [[nodiscard]] virtual std::optional<Gone> gone() const { return std::nullopt; }
    // Of a rank of the running plan; empty for this one.
    [[nodiscard]] virtual std::string host_of(Team::Rank /*rank*/) const { return {}; }
    // Another process was told to end.
    [[nodiscard]] virtual bool signalled() const { return false; }
    // The others end at once; this process must go, too.
    virtual void abandon() {}
};

// All ranks are threads of this process.
class ThreadCrew final : public Crew {
  public:
    [[nodiscard]] std::optional<Lack> lacks(const Plan& plan) const override;
    std::unique_ptr<Team> team_for(const PlanRequest& request) override;
};

}  // namespace strakes
