// A thread that has stepped aside.
#pragma once

#include "system/processors.hpp"

namespace strakes {

// Keeps the thread to other processors for as long as it is there. Two ranks on one processor though another one is
// free would begin one after the other, until the kernel has seen it and the first one's turn is over.
class Aside {
  public:
    // To those of `allowed` that are not `taken`; to none where all are.
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
