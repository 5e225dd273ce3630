// Moves a thread to another processor for a while.
#pragma once

#include "system/processors.hpp"

namespace strakes {

// Restricts the calling thread to processors that no other thread has taken, until it is destroyed. Otherwise two ranks
// may start on one processor although another one is idle, and the second waits for a time slice of the first.
class Aside {
  public:
    // Restrict the thread to `allowed` without `taken`. Do nothing if all are taken.
    Aside(const Processors& allowed, const Processors& taken) {
        Processors free = allowed;
        free.remove(taken);
        if (free.count() > 0 && free.keep_to()) before_ = allowed;
    }
    ~Aside() {
        if (before_.count() > 0) before_.keep_to();
    }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

  private:
    Processors before_;
};

}  // namespace strakes
