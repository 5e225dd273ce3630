// Nodes by host name and boot, since several machines may have one name.
#include "crew/crowd.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include "system/bytes.hpp"
#include "system/host.hpp"

namespace strakes {

std::string Crowd::introduction() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    Packer packer;
    packer.put_text(host_name());
    packer.put_text(boot);
    packer.put(::getpid());
    packer.put_text(Processors::allowed().bytes());
    return packer.take();
}

Crowd::Crowd(const std::vector<std::string>& introductions) {
    std::map<std::pair<std::string, std::string>, std::size_t> known;
    for (const std::string& introduction : introductions) {
        Unpacker unpacker(introduction);
        std::string host(unpacker.get_text());
        std::string boot(unpacker.get_text());
        const auto [place, fresh] = known.try_emplace({host, boot}, nodes_.size());
        if (fresh) nodes_.push_back({.host = std::move(host), .ranks = {}, .pids = {}});
        Node& node = nodes_[place->second];
        node.ranks.push_back(size());
        node.pids.push_back(unpacker.get<pid_t>());
        members_.push_back(
            {.node = place->second, .boot = std::move(boot), .processors = Processors(unpacker.get_text())});
    }
}

int Crowd::pid_of(Rank rank) const {
    const Node& node = node_of(rank);
    return node.pids[static_cast<std::size_t>(std::ranges::lower_bound(node.ranks, rank) - node.ranks.begin())];
}

Crowd::Share Crowd::share_of(Rank one, std::span<const Rank> ranks) const {
    Share share;
    for (const Rank rank : ranks) {
        if (members_[rank].boot != members_[one].boot) continue;
        share.ranks.push_back(rank);
        share.processors.add(members_[rank].processors);
    }
    return share;
}

std::vector<Crowd::Rank> Crowd::members_for(const Plan& plan) const {
    std::vector<Rank> members;
    for (const Node& node : nodes_) {
        const std::size_t left =
            std::min<std::size_t>(plan.ranks_per_node.value_or(plan.ranks), plan.ranks - members.size());
        members.insert(members.end(), node.ranks.begin(),
                       node.ranks.begin() + static_cast<std::ptrdiff_t>(std::min(left, node.ranks.size())));
    }
    return members;
}

}  // namespace strakes
