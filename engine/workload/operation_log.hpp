// Log of a probe's operations. Its rank appends without a lock, and another thread reads meanwhile.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace strakes {

// Times in nanoseconds since the phase's start on this rank. `error` is 0 for an acknowledged operation.
struct LoggedOperation {
    std::uint64_t due = 0;
    std::uint64_t begun = 0;
    std::uint64_t ended = 0;
    std::int32_t error = 0;
};

// Maximum number of rows in a message.
inline constexpr std::size_t kLogBatch = 1000;

class OperationLog {
  public:
    // Called before the phase. `room` is the number of operations that can be logged.
    void clear(std::size_t room = 0) {
        const std::lock_guard lock(mutex_);
        rows_.assign(room, {});
        written_ = 0;
        taken_ = 0;
    }
    void begin(std::uint64_t ticks) noexcept { start_.store(ticks, std::memory_order_relaxed); }
    void add(const LoggedOperation& operation) noexcept {
        const std::size_t place = written_.load(std::memory_order_relaxed);
        rows_[place] = operation;
        written_.store(place + 1, std::memory_order_release);
    }

    // Pass the operations added since the last call to `each`(number of the first, start in ticks, rows), at most
    // `most` at a time.
    template <class Each>
    void take(std::size_t most, Each each) {
        const std::lock_guard lock(mutex_);
        const std::size_t written = written_.load(std::memory_order_acquire);
        while (taken_ < written) {
            const std::size_t count = std::min(most, written - taken_);
            each(taken_, start_.load(std::memory_order_relaxed), std::span(rows_).subspan(taken_, count));
            taken_ += count;
        }
    }

  private:
    std::mutex mutex_;  // protects clear() and take()
    std::vector<LoggedOperation> rows_;
    std::atomic<std::size_t> written_{0};
    std::atomic<std::uint64_t> start_{0};
    std::size_t taken_ = 0;
};

}  // namespace strakes
