// The ranks of one node, for its leader: collects their heartbeats and passes orders on to them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "crew/beat.hpp"
#include "crew/silence.hpp"
#include "crew/wire.hpp"
#include "system/descriptor.hpp"

namespace strakes {

class LocalRanks {
  public:
    using Time = std::chrono::steady_clock;

    // `ranks` are numbers among all processes, the leader first; `connections` has their order, empty for the leader.
    LocalRanks(std::vector<std::uint32_t> ranks, std::vector<Descriptor> connections,
               std::chrono::milliseconds gone_after);

    // Returns a descriptor that is readable when a message of a rank has arrived.
    [[nodiscard]] int descriptor() const noexcept { return ready_.get(); }

    // Begins a plan with the first `count` ranks, the leader included, as its ranks `first`, `first` + 1, ….
    void begin(std::uint64_t plan, std::uint32_t first, std::uint32_t count);
    void hear();
    void look_for_silence(Time::time_point now);
    void say(const Order& order);

    // Returns the combined heartbeat. Includes `own`, the leader's beat, unless it is null.
    [[nodiscard]] NodeBeat sum(const Beat* own) const;

  private:
    struct Other {
        Wire<Order, Beat> wire;
        Beat beat;
    };

    [[nodiscard]] bool takes_part(std::size_t place) const noexcept { return place < count_; }
    void hear(std::size_t place);
    void lose(std::size_t place, Loss loss, const FailureText& why);
    void add(NodeBeat& node, std::size_t place, const Beat& beat) const;

    std::vector<std::uint32_t> ranks_;
    std::vector<std::unique_ptr<Other>> others_;  // by place; null for the leader
    Descriptor ready_;                            // an epoll descriptor for them
    Silence silence_;
    std::uint64_t plan_ = 0;
    std::uint32_t first_ = 0, count_ = 0;
    std::uint32_t lost_ = kNobody;  // the first lost rank
    Loss loss_ = Loss::none;
    FailureText failure_{};
};

}  // namespace strakes
