// Identifies nodes by host name and boot id, since several machines may have the same name.
#include "crew/crowd.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <utility>

#include "system/bytes.hpp"
#include "system/queries.hpp"
#include "team/post.hpp"

namespace strakes {

std::string Crowd::introduction() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return introduction(host_name(), boot, ::getpid(), Processors::allowed());
}

std::string Crowd::introduction(std::string_view host, std::string_view machine, int pid,
                                const Processors& processors) {
    Packer packer;
    packer.put_text(host);
    packer.put_text(machine);
    packer.put(pid);
    packer.put_text(processors.bytes());
    return packer.take();
}

Crowd::Crowd(const std::vector<std::string>& introductions) {
    std::map<std::pair<std::string, std::string>, std::uint32_t> known;
    std::map<std::string, std::uint32_t> boots, kinds;
    for (const std::string& introduction : introductions) {
        Unpacker unpacker(introduction);
        std::string host(unpacker.get_text());
        std::string boot(unpacker.get_text());
        const auto machine = boots.try_emplace(boot, static_cast<std::uint32_t>(boots.size())).first->second;
        const auto [place, fresh] = known.try_emplace({host, boot}, static_cast<std::uint32_t>(nodes_.size()));
        if (fresh) {
            nodes_.push_back({.host = std::move(host), .ranks = {}, .pids = {}});
            machines_.push_back(machine);
        }
        Node& node = nodes_[place->second];
        node.ranks.push_back(size());
        node.pids.push_back(unpacker.get<pid_t>());
        const std::string_view processors = unpacker.get_text();
        const auto [kind, new_kind] =
            kinds.try_emplace(std::string(processors), static_cast<std::uint32_t>(processors_.size()));
        if (new_kind) processors_.emplace_back(processors);
        members_.push_back({.node = place->second, .processors = kind->second});
    }
}

// The first process builds the crowd and broadcasts it, so that the others need not store every introduction.
Crowd Crowd::meet(Post& post, std::string_view introduction) {
    std::vector<Post::Rank> ranks(post.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    Circle everybody(post, std::move(ranks), post.rank());
    const std::vector<std::string> introductions = everybody.to_first(introduction);
    Packer packer;
    if (post.rank() == 0) packer(Crowd(introductions));
    const std::string bytes = everybody.from_first(packer.take());
    Crowd crowd;
    Unpacker unpacker(bytes);
    unpacker(crowd);
    return crowd;
}

std::size_t Crowd::place_of(Rank rank) const {
    const auto& ranks = node_of(rank).ranks;
    return static_cast<std::size_t>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
}

Crowd::Share Crowd::share_of(Rank one, std::span<const Rank> ranks) const {
    Share share;
    for (const Rank rank : ranks) {
        if (machine_of(rank) != machine_of(one)) continue;
        share.ranks.push_back(rank);
        share.processors.add(processors_[members_[rank].processors]);
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
