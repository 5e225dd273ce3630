// ThreadExchange: messages between threads. The second to arrive, sender or receiver, copies the bytes. Nodes are
// simulated, so that one machine can test communication between nodes.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "system/buffer.hpp"
#include "team/exchange.hpp"

namespace strakes {

class ThreadExchange {
  public:
    using Rank = Exchange::Rank;

    ThreadExchange(Rank ranks, Rank ranks_per_node);
    ~ThreadExchange();
    ThreadExchange(const ThreadExchange&) = delete;
    ThreadExchange& operator=(const ThreadExchange&) = delete;

    [[nodiscard]] Exchange& of(Rank rank);

  private:
    class End;

    // Memory shared by the ranks of one node.
    struct Node {
        std::mutex mutex;
        Rank holders = 0;  // ranks that use the memory
        Buffer memory;
    };

    std::vector<std::uint32_t> nodes_;
    std::vector<std::unique_ptr<Node>> shared_;
    std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace strakes
