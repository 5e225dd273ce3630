// ThreadStart: start line for threads. The last one to arrive releases all.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "system/aside.hpp"
#include "system/processors.hpp"
#include "team/processes.hpp"

namespace strakes {

class ThreadStart {
  public:
    // `crowded`: some threads must share a processor.
    ThreadStart(std::uint32_t threads, bool crowded) : threads_(threads), crowded_(crowded) {}

    // Prepare the next start. Called while all threads wait elsewhere.
    void reset();
    // Called once by each thread. If every thread has a processor, all leave at the same time; otherwise each leaves at
    // once.
    [[nodiscard]] Start pass();

  private:
    void take_processor(std::optional<Aside>& aside);

    std::uint32_t threads_;
    bool crowded_;
    std::mutex mutex_;
    Processors taken_;  // by the threads that have arrived
    std::atomic<std::uint32_t> come_{0};
    std::atomic<std::uint64_t> start_{0};  // ticks; 0 until the last thread has arrived
};

}  // namespace strakes
