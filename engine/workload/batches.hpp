// Queue of batches between the readers of a rank and its accelerator. Readers finish batches in any order, the
// accelerator takes them in sequence. The queue limits the read-ahead.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace strakes {

class Batches {
  public:
    Batches(std::uint64_t count, std::uint64_t ahead) : count_(count), ready_(ahead) {}

    // Called by a reader. Wait for room and return the next batch to read, or nothing if all are taken or over() is
    // true.
    template <class Over>
    std::optional<std::uint64_t> take(const Over& over) {
        std::unique_lock lock(mutex_);
        if (!wait(lock, room_, over, [this] { return next_ == count_ || next_ < wanted_ + ready_.size(); }))
            return std::nullopt;
        return next_ == count_ ? std::nullopt : std::optional(next_++);
    }
    void put(std::uint64_t batch) {
        const std::scoped_lock lock(mutex_);
        ready_[batch % ready_.size()] = true;
        filled_.notify_all();
    }

    // Called by the accelerator. Wait for its next batch and free its slot. Return false if over() became true first.
    template <class Over>
    bool next(const Over& over) {
        std::unique_lock lock(mutex_);
        const auto place = static_cast<std::size_t>(wanted_ % ready_.size());
        if (!wait(lock, filled_, over, [this, place] { return static_cast<bool>(ready_[place]); })) return false;
        ready_[place] = false;
        ++wanted_;
        room_.notify_all();
        return true;
    }

  private:
    template <class Over, class Ready>
    static bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& change, const Over& over,
                     const Ready& ready) {
        constexpr std::chrono::milliseconds kLook{100};  // nothing notifies a change of over()
        while (!over()) {
            if (ready()) return true;
            change.wait_for(lock, kLook);
        }
        return false;
    }

    std::mutex mutex_;
    std::condition_variable room_, filled_;
    std::uint64_t count_;
    std::uint64_t next_ = 0, wanted_ = 0;
    std::vector<bool> ready_;
};

}  // namespace strakes
