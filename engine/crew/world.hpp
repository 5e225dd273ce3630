// The objects of a process that connect it with the other processes of the engine.
#pragma once

#include <vector>

#include "crew/clocks.hpp"
#include "crew/crowd.hpp"
#include "crew/performer.hpp"
#include "plan/plan.hpp"
#include "team/circle.hpp"
#include "team/post.hpp"

namespace strakes {

struct World {
    Performer& performer;
    Post& post;
    const Crowd& crowd;
    Clocks& clocks;

    [[nodiscard]] Circle everybody() const {
        std::vector<Circle::Rank> ranks(post.size());
        for (Circle::Rank rank = 0; rank < post.size(); ++rank) ranks[rank] = rank;
        return {post, std::move(ranks), post.rank()};
    }
};

}  // namespace strakes
