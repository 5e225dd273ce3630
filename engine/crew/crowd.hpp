// The processes that were started together, and which of them take part in a plan.
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

    // What a process says of itself, as bytes.
    [[nodiscard]] static std::string introduction();
    [[nodiscard]] static std::string introduction(std::string_view host, std::string_view machine, int pid,
                                                  const Processors& processors);
    // From everybody's introduction, by rank.
    explicit Crowd(const std::vector<std::string>& introductions);
    // By all processes together.
    [[nodiscard]] static Crowd meet(Post& post, std::string_view introduction);

    [[nodiscard]] Rank size() const noexcept { return static_cast<Rank>(members_.size()); }
    [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
    [[nodiscard]] const Node& node_of(Rank rank) const { return nodes_[members_[rank].node]; }
    [[nodiscard]] std::uint32_t number_of_node(Rank rank) const { return members_[rank].node; }
    [[nodiscard]] Rank leader_of(Rank rank) const { return node_of(rank).ranks.front(); }
    // Of a rank, among those of its node.
    [[nodiscard]] std::size_t place_of(Rank rank) const;
    [[nodiscard]] int pid_of(Rank rank) const { return node_of(rank).pids[place_of(rank)]; }
    // Which of `ranks` share a machine with `one`, and the processors that these may use. Nodes that are namespaces of
    // one machine have the same ones.
    struct Share {
        std::vector<Rank> ranks;
        Processors processors;
    };
    [[nodiscard]] Share share_of(Rank one, std::span<const Rank> ranks) const;

    // The ranks of this crowd that are ranks 0, 1, … of the plan, node after node: at most ranks_per_node of each, the
    // first ones. Fewer than the plan wants where there are not enough.
    [[nodiscard]] std::vector<Rank> members_for(const Plan& plan) const;

  private:
    struct Member {
        std::uint32_t node;
        std::uint32_t processors;  // which of those of the crowd
    };

    Crowd() = default;
    [[nodiscard]] std::string pack() const;
    [[nodiscard]] static Crowd unpack(std::string_view bytes);
    [[nodiscard]] std::uint32_t machine_of(Rank rank) const { return machines_[members_[rank].node]; }

    std::vector<Node> nodes_;              // by their first rank
    std::vector<std::uint32_t> machines_;  // of nodes
    std::vector<Processors> processors_;   // each kind once, since every process keeps the whole crowd
    std::vector<Member> members_;
};

}  // namespace strakes
