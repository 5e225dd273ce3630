// The processes that were started together, and which of them take part in a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "protocol/report.hpp"
#include "system/processors.hpp"

namespace strakes {

class Crowd {
  public:
    using Rank = std::uint32_t;

    // What a process says of itself, as bytes.
    [[nodiscard]] static std::string introduction();
    // From everybody's introduction, by rank.
    explicit Crowd(const std::vector<std::string>& introductions);

    [[nodiscard]] Rank size() const noexcept { return static_cast<Rank>(members_.size()); }
    [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
    [[nodiscard]] const Node& node_of(Rank rank) const { return nodes_[members_[rank].node]; }
    [[nodiscard]] std::uint32_t number_of_node(Rank rank) const {
        return static_cast<std::uint32_t>(members_[rank].node);
    }
    [[nodiscard]] Rank leader_of(Rank rank) const { return node_of(rank).ranks.front(); }
    [[nodiscard]] int pid_of(Rank rank) const;
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
        std::size_t node;
        std::string boot;  // of its machine
        Processors processors;
    };

    std::vector<Node> nodes_;  // by their first rank
    std::vector<Member> members_;
};

}  // namespace strakes
