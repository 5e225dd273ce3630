// Messages between threads: whoever comes second, with the message or with the room for it, copies it there. Nodes are
// said, not real, so that what happens between nodes can be tried on one machine.
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

    // What all ranks of one node share.
    struct Node {
        std::mutex mutex;
        Rank holders = 0;  // of the memory
        Buffer memory;
    };

    std::vector<std::uint32_t> nodes_;
    std::vector<std::unique_ptr<Node>> shared_;
    std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace strakes
