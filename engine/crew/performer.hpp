// One thread that does what another asks of it, one thing after the other: MPI may be called by the thread only that
// has initialised it, and that thread is not the one that watches.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

namespace strakes {

class Performer {
  public:
    // For the thread that asks. Waits for what was asked before.
    void perform(std::function<void()> body) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !body_; });
        body_ = std::move(body);
        tell(lock);
    }
    // Until everything asked for is done.
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !body_; });
    }
    // As wait(), looking up now and then.
    template <class Look>
    void wait(std::chrono::milliseconds every, Look look) {
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, every, [this] { return !body_; })) {
            lock.unlock();
            look();
            lock.lock();
        }
    }
    void dismiss() {
        perform([this] { dismissed_ = true; });
    }

    // For the thread that does it: until it is dismissed.
    void serve() {
        while (!dismissed_) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return static_cast<bool>(body_); });
            lock.unlock();
            body_();
            lock.lock();
            body_ = nullptr;
            tell(lock);
        }
    }

  private:
    // The other thread may run first and at once: it is not to wait for what this one still holds.
    void tell(std::unique_lock<std::mutex>& lock) {
        lock.unlock();
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> body_;  // there as long as it is being done
    bool dismissed_ = false;      // of the performing thread
};

}  // namespace strakes
