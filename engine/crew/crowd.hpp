// The processes that were started together, and their selection for a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"
#include "protocol/report.hpp"
#include "system/processors.hpp"
#include "team/post.hpp"

namespace strakes {

class Crowd {
  public:
    using Rank = std::uint32_t;

    // Returns the packed description of this process.
    [[nodiscard]] static std::string introduction();
    [[nodiscard]] static std::string introduction(std::string_view host, std::string_view machine, int pid,
                                                  const Processors& processors);
    // Takes the introductions of all processes, by rank.
    explicit Crowd(const std::vector<std::string>& introductions);
    // Collective over all processes.
    [[nodiscard]] static Crowd meet(Post& post, std::string_view introduction);

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.nodes_, self.machines_, self.processors_, self.members_);
    }

    [[nodiscard]] Rank size() const noexcept { return static_cast<Rank>(members_.size()); }
    [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
    [[nodiscard]] const Node& node_of(Rank rank) const { return nodes_[members_[rank].node]; }
    [[nodiscard]] std::uint32_t number_of_node(Rank rank) const { return members_[rank].node; }
    [[nodiscard]] Rank leader_of(Rank rank) const { return node_of(rank).ranks.front(); }
    // Returns the position of a rank among the ranks of its node.
    [[nodiscard]] std::size_t place_of(Rank rank) const;
    [[nodiscard]] int pid_of(Rank rank) const { return node_of(rank).pids[place_of(rank)]; }
    // The ranks among `ranks` that share a machine with `one`, and the processors that they may use. Several nodes may
    // be namespaces of one machine and share its processors.
    struct Share {
        std::vector<Rank> ranks;
        Processors processors;
    };
    [[nodiscard]] Share share_of(Rank one, std::span<const Rank> ranks) const;

    // Returns the processes that become ranks 0, 1, … of the plan, node after node: of each node the first
    // ranks_per_node. Returns fewer than the plan needs if the crowd is too small.
    [[nodiscard]] std::vector<Rank> members_for(const Plan& plan) const;

  private:
    struct Member {
        std::uint32_t node;
        std::uint32_t processors;  // index in processors_
    };

    Crowd() = default;
    [[nodiscard]] std::uint32_t machine_of(Rank rank) const { return machines_[members_[rank].node]; }

    std::vector<Node> nodes_;              // in the order of their first ranks
    std::vector<std::uint32_t> machines_;  // number of the machine, by node
    std::vector<Processors> processors_;   // each distinct set once, since every process stores the whole crowd
    std::vector<Member> members_;
};

}  // namespace strakes
