// Ranks that are threads: their messages and their start line.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "system/buffer.hpp"
#include "system/processors.hpp"
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
        Rank holders = 0;  // number of ranks that use the memory
        Buffer memory;
    };

    std::vector<std::uint32_t> nodes_;
    std::vector<std::unique_ptr<Node>> shared_;
    std::vector<std::unique_ptr<End>> ends_;
};

class ThreadStart {
  public:
    ThreadStart(std::uint32_t threads, bool crowded) : threads_(threads), crowded_(crowded) {}

    // Prepare the next start. Called while all threads wait elsewhere.
    void reset();
    // Called once by each thread. If every thread has a processor, all threads return at the same time; otherwise each
    // thread returns immediately.
    [[nodiscard]] Start pass();

  private:
    void take_processor(std::optional<Aside>& aside);

    std::uint32_t threads_;
    bool crowded_;
    std::mutex mutex_;
    Processors taken_;  // processors of the threads that have arrived
    std::atomic<std::uint32_t> come_{0};
    std::atomic<std::uint64_t> start_{0};  // start time in ticks; 0 until the last thread has arrived
};

}  // namespace strakes
