// Waiting for MPI: looking again and again, with longer and longer naps in between. Libraries wait by spinning, which
// takes the processor from the ranks that are being timed, and from everybody where there are more ranks than
// processors.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>

namespace strakes {

class Patience {
  public:
    // Without naps where the longest is none.
    explicit Patience(std::uint64_t longest_nap_ns) : longest_(longest_nap_ns) {}

    void pause() {
        if (looks_ < kLooks || longest_ == 0) {
            ++looks_;
            ::sched_yield();
            return;
        }
        const timespec nap{0, static_cast<long>(nap_)};
        ::nanosleep(&nap, nullptr);
        nap_ = std::min(nap_ * 2, longest_);
    }

  private:
    static constexpr int kLooks = 50;
    static constexpr std::uint64_t kShortestNapNs = 20'000;

    int looks_ = 0;
    std::uint64_t nap_ = kShortestNapNs;
    std::uint64_t longest_;
};

inline constexpr std::uint64_t kShortNapNs = 100'000;

// An error ends the run: whoever was named by on_mpi_failure() is told which call of this rank failed and how, and ends
// the process; this does not come back. One that only means that somebody else has gone is seen by the watching
// threads, too.
void check_mpi(const char* call, int error);
void on_mpi_failure(std::function<void(const std::string&)> tell);

}  // namespace strakes
