// Connections outside MPI: from the leader of every node to the first process, and from the other ranks of a node to
// its leader. A process has at most one connection for each node and one for each rank of its node.
#pragma once

#include <vector>

#include "crew/clocks.hpp"
#include "crew/crowd.hpp"
#include "crew/performer.hpp"
#include "plan/plan.hpp"
#include "system/descriptor.hpp"
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

struct Connections {
    Descriptor up;                  // to the leader of the node; a leader's, to the first process
    std::vector<Descriptor> local;  // of a leader: by place in its node; its own entry is empty
    std::vector<Descriptor> nodes;  // of the first process: by number of the node; its own entry is empty
};

// Collective over all processes. If one of them cannot connect, rank 0 prints why and all processes exit.
[[nodiscard]] Connections connect_all(const World& world);

}  // namespace strakes
