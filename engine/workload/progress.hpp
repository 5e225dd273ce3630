// What a rank lets others see while it works: counters in a cache line of its own, no locks.
#pragma once

#include <atomic>
#include <cstdint>

namespace strakes {

struct alignas(64) Progress {
    std::atomic<std::uint64_t> operations{0};
    std::atomic<std::uint64_t> bytes{0};
    // A string that lives for ever: what the rank is at, for the message about one that hangs.
    std::atomic<const char*> stage{"starting"};
    std::atomic<bool> finished{false};  // with the timed section

    void at(const char* what) noexcept { stage.store(what, std::memory_order_relaxed); }
    // After one operation. One writer, so no atomic addition is needed.
    void publish(std::uint64_t total_operations, std::uint64_t total_bytes) noexcept {
        operations.store(total_operations, std::memory_order_relaxed);
        bytes.store(total_bytes, std::memory_order_relaxed);
    }
};

// Where a rank waits for others; a rank at any other stage can be the one that hangs.
inline constexpr const char* kWaiting = "waiting for the other ranks";

}  // namespace strakes
