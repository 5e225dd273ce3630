// The stop rule wear-out: after its seconds, every rank continues to the position of the most advanced rank.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plan/stop.hpp"
#include "team/agreement.hpp"
#include "workload/workload.hpp"

namespace strakes {

class WearOut {
  public:
    WearOut(const Seat& seat, const Stop& stop) noexcept
        : exchange_(stop.rule == StopRule::wear_out ? seat.exchange : nullptr), rank_(seat.rank) {}

    [[nodiscard]] bool wanted() const noexcept { return exchange_ != nullptr; }
    // Return the number of operations to reach, at least `done`. Waits for all ranks. Every rank must call it in its
    // timed section, even if it has finished or failed. Only the first call of a rank counts.
    std::uint64_t agree(std::uint64_t done) {
        if (!wanted() || agreed_) return done;
        agreed_ = true;
        return std::max(done, most_of_all(*exchange_, rank_, {done, 0, 0}).front());
    }

  private:
    Exchange* exchange_;
    std::uint32_t rank_;
    bool agreed_ = false;
};

}  // namespace strakes
