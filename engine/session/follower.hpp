// The life of a process that is not the first: plans as the leader calls for them, until it says that there will be no
// more.
#pragma once

#include <memory>

#include "crew/following_crew.hpp"
#include "protocol/output.hpp"
#include "session/plan_run.hpp"

namespace strakes {

class Follower {
  public:
    // As Session; `output` is for the last words about a leader that has gone, in case this process is to say them.
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
    Output unheard_;  // of its plans: what there is to say the leader says
    std::unique_ptr<PlanRun> plan_;
};

}  // namespace strakes
