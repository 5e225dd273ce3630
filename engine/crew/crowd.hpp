// The processes that were started together, and their selection for a plan.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "protocol/report.hpp"
#include "system/bytes.hpp"
#include "system/processors.hpp"
#include "system/queries.hpp"
#include "team/post.hpp"

namespace strakes {

class Crowd {
  public:
    using Rank = std::uint32_t;

    [[nodiscard]] static std::string introduction() {
        std::string boot;
        std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
        return introduction(host_name(), boot, ::getpid(), Processors::allowed());
    }
    [[nodiscard]] static std::string introduction(std::string_view host, std::string_view machine, int pid,
                                                  const Processors& processors) {
        Packer packer;
        packer.put_text(host);
        packer.put_text(machine);
        packer.put(pid);
        packer.put_text(processors.bytes());
        return packer.take();
    }
    // `introductions`: the results of introduction() in all processes, by rank.
    explicit Crowd(const std::vector<std::string>& introductions) {
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
    // Collective over all processes. The first process builds the crowd and broadcasts it, so that the other processes
    // need not store every introduction.
    [[nodiscard]] static Crowd meet(Post& post, std::string_view introduction) {
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

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.nodes_, self.machines_, self.processors_, self.members_);
    }

    [[nodiscard]] Rank size() const noexcept { return static_cast<Rank>(members_.size()); }
    [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
    [[nodiscard]] const Node& node_of(Rank rank) const { return nodes_[members_[rank].node]; }
    [[nodiscard]] std::uint32_t number_of_node(Rank rank) const { return members_[rank].node; }
    [[nodiscard]] Rank leader_of(Rank rank) const { return node_of(rank).ranks.front(); }
    [[nodiscard]] std::size_t place_of(Rank rank) const {
        const auto& ranks = node_of(rank).ranks;
        return static_cast<std::size_t>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
    }
    [[nodiscard]] int pid_of(Rank rank) const { return node_of(rank).pids[place_of(rank)]; }
    // Ranks on one machine, and the processors that they may use. Several nodes can be containers on one machine, and
    // then share its processors.
    struct Share {
        std::vector<Rank> ranks;
        Processors processors;
    };
    [[nodiscard]] Share share_of(Rank one, std::span<const Rank> ranks) const {
        Share share;
        for (const Rank rank : ranks) {
            if (machine_of(rank) != machine_of(one)) continue;
            share.ranks.push_back(rank);
            share.processors.add(processors_[members_[rank].processors]);
        }
        return share;
    }

    // Returns the processes that become ranks 0, 1, … of the plan: the first ranks_per_node processes of each node,
    // node after node. Returns fewer processes than the plan needs if the crowd is too small.
    [[nodiscard]] std::vector<Rank> members_for(const Plan& plan) const {
        std::vector<Rank> members;
        for (const Node& node : nodes_) {
            const std::size_t left =
                std::min<std::size_t>(plan.ranks_per_node.value_or(plan.ranks), plan.ranks - members.size());
            members.insert(members.end(), node.ranks.begin(),
                           node.ranks.begin() + static_cast<std::ptrdiff_t>(std::min(left, node.ranks.size())));
        }
        return members;
    }

  private:
    struct Member {
        std::uint32_t node;
        std::uint32_t processors;  // index of the processors in processors_
    };

    Crowd() = default;
    [[nodiscard]] std::uint32_t machine_of(Rank rank) const { return machines_[members_[rank].node]; }

    std::vector<Node> nodes_;              // nodes in the order of their first ranks
    std::vector<std::uint32_t> machines_;  // node -> number of its machine
    std::vector<Processors> processors_;   // each set only once, since every process stores the whole crowd
    std::vector<Member> members_;
};

}  // namespace strakes
