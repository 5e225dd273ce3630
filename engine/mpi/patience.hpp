// Waits for MPI by polling with increasing sleeps. MPI libraries wait by spinning, which takes processor time from
// ranks in a timed section, and from all ranks if there are more ranks than processors.
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
    // 0 polls without sleeping.
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

// On an error, passes the name of the call and MPI's message to the function set by on_mpi_failure(), which ends the
// process, and does not return. Exits if no function is set. If the cause is the loss of another process, the watching
// threads detect that as well.
void check_mpi(const char* call, int error);
void on_mpi_failure(std::function<void(const std::string&)> tell);

}  // namespace strakes
