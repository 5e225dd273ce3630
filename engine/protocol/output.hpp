// Messages that go out: one JSON object a line, each written whole, from any thread.
#pragma once

#include <atomic>
#include <mutex>
#include <nlohmann/json_fwd.hpp>

namespace strakes {

class Output {
  public:
    explicit Output(int descriptor) : descriptor_(descriptor) {}

    void send(const nlohmann::ordered_json& message);

    // Nobody reads any more.
    [[nodiscard]] bool broken() const noexcept { return broken_.load(std::memory_order_relaxed); }

  private:
    int descriptor_;
    std::mutex mutex_;
    std::atomic<bool> broken_{false};
};

}  // namespace strakes
