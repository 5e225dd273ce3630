// Runs functions for one thread on another, one at a time. Only the thread that initialised MPI may call it, and a
// different thread watches the plan.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

namespace strakes {

class Performer {
  public:
    // For the requesting thread: waits for the previous function, then passes on `body` without waiting for it.
    void perform(std::function<void()> body) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !body_; });
        body_ = std::move(body);
        tell(lock);
    }
    // Waits until all functions have returned.
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !body_; });
    }
    // The same, with a call of look() after each interval.
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

    // For the performing thread: runs functions until it is dismissed.
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
    // Unlocks first: the other thread may wake at once and would block on the mutex.
    void tell(std::unique_lock<std::mutex>& lock) {
        lock.unlock();
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> body_;  // set until it has returned
    bool dismissed_ = false;      // only for the performing thread
};

}  // namespace strakes
