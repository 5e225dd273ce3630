// Connections outside MPI: from the leader of every node to the first process, and from the other ranks of a node to
// its leader. A process has at most one connection for each node and one for each rank of its node.
#pragma once

#include <vector>

#include "crew/world.hpp"
#include "system/descriptor.hpp"

namespace strakes {

struct Connections {
    Descriptor up;                  // to the leader of the node; a leader's, to the first process
    std::vector<Descriptor> local;  // of a leader: by place in its node; its own entry is empty
    std::vector<Descriptor> nodes;  // of the first process: by number of the node; its own entry is empty
};

// Collective over all processes. If one of them cannot connect, rank 0 prints why and all processes exit.
[[nodiscard]] Connections connect_all(const World& world);

}  // namespace strakes
