// Leaders announce the addresses of their switchboards over the post, all processes connect, and agree on success.
#include "crew/connections.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "crew/wire.hpp"
#include "system/queries.hpp"

namespace strakes {

namespace {

constexpr int kLacks = 3;

Circle leaders_of(const World& world) {
    std::vector<Circle::Rank> leaders;
    for (const Node& node : world.crowd.nodes()) leaders.push_back(node.ranks.front());
    return {world.post, std::move(leaders), world.crowd.number_of_node(world.post.rank())};
}

// Sends the address of the leader's switchboard to the ranks of the node. Returns the address on every rank.
std::string tell_node(const World& world, const std::string& mine) {
    const auto& ranks = world.crowd.node_of(world.post.rank()).ranks;
    if (ranks.front() != world.post.rank()) return world.post.receive(ranks.front(), Post::Wait::patient);
    for (std::size_t place = 1; place < ranks.size(); ++place) world.post.send(ranks[place], mine);
    return mine;
}

[[noreturn]] void end_all(const World& world, const std::string& why) {
    Circle everybody = world.everybody();
    for (const std::string& each : everybody.all(why)) {
        if (world.post.rank() == 0 && !each.empty())
            std::fprintf(stderr, "strakes-engine-mpi: %s. The nodes must reach each other by TCP.\n", each.c_str());
    }
    ::_exit(kLacks);
}

}  // namespace

Connections connect_all(const World& world) {
    const auto rank = world.post.rank();
    const Node& node = world.crowd.node_of(rank);
    const bool leads = node.ranks.front() == rank;
    std::optional<Switchboard> for_nodes, for_node;
    if (rank == 0 && world.crowd.nodes().size() > 1)
        for_nodes.emplace(static_cast<std::uint32_t>(world.crowd.nodes().size()), Reach::network);
    if (leads && node.ranks.size() > 1) for_node.emplace(static_cast<std::uint32_t>(node.ranks.size()), Reach::node);
    Connected connected;
    if (leads) {
        const std::string where = leaders_of(world).from_first(for_nodes ? for_nodes->where() : "");
        if (rank != 0 && !where.empty()) connected = connect_to(where, world.crowd.number_of_node(rank));
    }
    const std::string where = tell_node(world, for_node ? for_node->where() : "");
    if (!leads && !where.empty()) {
        const auto place = std::ranges::lower_bound(node.ranks, rank) - node.ranks.begin();
        connected = connect_to(where, static_cast<std::uint32_t>(place));
    }
    std::string why = for_nodes && !for_nodes->why().empty() ? for_nodes->why()
                      : for_node && !for_node->why().empty() ? for_node->why()
                                                             : "";
    if (!connected.why.empty())
        why = "rank " + std::to_string(rank) + " on " + host_name() + " cannot reach rank " +
              std::to_string(leads ? 0 : node.ranks.front()) + ": " + connected.why;
    if (world.everybody().most(why.empty() ? 0 : 1) != 0) end_all(world, why);
    return {.up = std::move(connected.descriptor),
            .local = for_node ? for_node->take() : std::vector<Descriptor>(1),
            .nodes = for_nodes ? for_nodes->take() : std::vector<Descriptor>(rank == 0 ? 1 : 0)};
}

}  // namespace strakes
