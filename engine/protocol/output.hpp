// Writes messages, one JSON object on each line. Any thread may send; lines are not interleaved.
#pragma once

#include <atomic>
#include <mutex>
#include <nlohmann/json_fwd.hpp>

namespace strakes {

class Output {
  public:
    explicit Output(int descriptor) : descriptor_(descriptor) {}

    void send(const nlohmann::ordered_json& message);

    // Returns whether a write has failed. Later messages are then dropped.
    [[nodiscard]] bool broken() const noexcept { return broken_.load(std::memory_order_relaxed); }

  private:
    int descriptor_;
    std::mutex mutex_;
    std::atomic<bool> broken_{false};
};

}  // namespace strakes
