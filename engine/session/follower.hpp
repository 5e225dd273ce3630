// Follower: the main loop of every process except rank 0. It runs the plans that the leader announces, until the leader
// dismisses it.
#pragma once

#include <memory>

#include "crew/following_crew.hpp"
#include "protocol/output.hpp"
#include "session/plan_run.hpp"

namespace strakes {

class Follower {
  public:
    // `signals` and `news` as for Session. Rank 1 uses `output` to report that the leader is lost.
    Follower(int signals, int news, Output& output, FollowingCrew& crew);

    int run();

  private:
    void wait();
    void begin();
    [[noreturn]] void end_without_leader();

    int signals_, news_;
    Output& output_;
    FollowingCrew& crew_;
    Descriptor nowhere_;
    Output unheard_;  // discards the output of its plans, which the leader reports
    std::unique_ptr<PlanRun> plan_;
};

}  // namespace strakes
