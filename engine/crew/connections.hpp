// The connections beside the post: of every leader of a node to the first process, and of the other ranks of a node to
// its leader. How many a process has grows with nodes, or with the ranks of one node, never with both.
#pragma once

#include <vector>

#include "crew/world.hpp"
#include "system/descriptor.hpp"

namespace strakes {

struct Connections {
    Descriptor up;                  // to the leader of the node, or from that to the first process
    std::vector<Descriptor> local;  // of a leader: by place in its node, none for itself
    std::vector<Descriptor> nodes;  // of the first process: by number of the node, none for its own
};

// By all processes together, or the end of all: then the first says why on standard error.
[[nodiscard]] Connections connect_all(const World& world);

}  // namespace strakes
