// The processes that were started together, and which of them take part in a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "protocol/report.hpp"

namespace strakes {

class Crowd {
  public:
    using Rank = std::uint32_t;

    // What a process says of itself, as bytes.
    [[nodiscard]] static std::string introduction();
    // From everybody's introduction, by rank.
    explicit Crowd(const std::vector<std::string>& introductions);

    [[nodiscard]] Rank size() const noexcept { return static_cast<Rank>(node_of_.size()); }
    [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
    [[nodiscard]] const Node& node_of(Rank rank) const { return nodes_[node_of_[rank]]; }
    [[nodiscard]] std::uint32_t number_of_node(Rank rank) const { return static_cast<std::uint32_t>(node_of_[rank]); }
    [[nodiscard]] Rank leader_of(Rank rank) const { return node_of(rank).ranks.front(); }
    [[nodiscard]] int pid_of(Rank rank) const;
    // The first ranks of their nodes.
    [[nodiscard]] std::vector<Rank> leaders() const;

    // The ranks of this crowd that are ranks 0, 1, … of the plan, node after node: at most ranks_per_node of each, the
    // first ones. Fewer than the plan wants where there are not enough.
    [[nodiscard]] std::vector<Rank> members_for(const Plan& plan) const;

  private:
    std::vector<Node> nodes_;  // by their first rank
    std::vector<std::size_t> node_of_;
};

}  // namespace strakes
