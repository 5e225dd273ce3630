// Connections outside MPI: from the leader of every node to the first process, and from the other ranks of a node to
// its leader. A process has at most one connection for each node and one for each rank of its node.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "crew/clocks.hpp"
#include "crew/crowd.hpp"
#include "plan/plan.hpp"
#include "system/descriptor.hpp"
#include "team/post.hpp"

namespace strakes {

// Runs functions of one thread on another thread, one at a time. Needed because only the thread that initialised MPI
// may call MPI, and a different thread watches the plan.
class Performer {
  public:
    // Called by the requesting thread. Waits for the previous function, then passes `body` to the performing thread.
    void perform(std::function<void()> body) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !body_; });
        body_ = std::move(body);
        tell(lock);
    }
    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !body_; });
    }
    // Waits until all functions have returned. Meanwhile calls look() at the interval `every`.
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

    // Called by the performing thread. Runs functions until the thread is dismissed.
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
    // Unlocks first: the other thread may wake up immediately, and would then block on the mutex.
    void tell(std::unique_lock<std::mutex>& lock) {
        lock.unlock();
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> body_;  // the function to run; empty after the function has returned
    bool dismissed_ = false;      // used only by the performing thread
};

struct World {
    Performer& performer;
    Post& post;
    const Crowd& crowd;
    Clocks& clocks;

    [[nodiscard]] Circle everybody() const {
        std::vector<Circle::Rank> ranks(post.size());
        for (Circle::Rank rank = 0; rank < post.size(); ++rank) ranks[rank] = rank;
        return {post, std::move(ranks), post.rank()};
    }
};

struct Connections {
    Descriptor up;                  // connection to the leader of the node; on a leader, to the first process
    std::vector<Descriptor> local;  // on a leader: connections by position in the node, without the leader's own
    std::vector<Descriptor> nodes;  // on the first process: connections by node number, without its own node
};

// Collective over all processes. If a process cannot connect, rank 0 prints the reason and all processes exit.
[[nodiscard]] Connections connect_all(const World& world);

}  // namespace strakes
