// Progress of a rank, visible to other threads: counters in a separate cache line, without locks.
#pragma once

#include <atomic>
#include <cstdint>

namespace strakes {

struct alignas(64) Progress {
    std::atomic<std::uint64_t> operations{0};
    std::atomic<std::uint64_t> bytes{0};
    // A string with static storage duration: the current stage, for the message about a rank that hangs.
    std::atomic<const char*> stage{"starting"};
    std::atomic<bool> finished{false};  // the timed section

    void at(const char* what) noexcept { stage.store(what, std::memory_order_relaxed); }
    // Called after each operation. There is one writer, so no atomic addition is needed.
    void publish(std::uint64_t total_operations, std::uint64_t total_bytes) noexcept {
        operations.store(total_operations, std::memory_order_relaxed);
        bytes.store(total_bytes, std::memory_order_relaxed);
    }
};

// The stage of a rank that waits for others. A rank in any other stage may be the one that hangs.
inline constexpr const char* kWaiting = "waiting for the other ranks";

}  // namespace strakes
