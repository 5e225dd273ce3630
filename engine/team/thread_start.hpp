// The start line of threads: the last to come lets all others go.
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
    // `crowded`: some of them are put on one processor, whatever there is.
    ThreadStart(std::uint32_t threads, bool crowded) : threads_(threads), crowded_(crowded) {}

    // While all of them wait elsewhere.
    void reset();
    // By each of them, once; where there is a processor for each, all leave at one moment.
    [[nodiscard]] Start pass();

  private:
    void take_processor(std::optional<Aside>& aside);

    std::uint32_t threads_;
    bool crowded_;
    std::mutex mutex_;
    Processors taken_;  // by those who have come
    std::atomic<std::uint32_t> come_{0};
    std::atomic<std::uint64_t> start_{0};  // ticks; 0 until the last has come
};

}  // namespace strakes
