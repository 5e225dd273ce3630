// The ranks of one node as its leader hears them: it speaks for all of them, and passes orders on to them.
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

    // `ranks` of those started, the leader's first; `connections` in the same order, none for the leader.
    LocalRanks(std::vector<std::uint32_t> ranks, std::vector<Descriptor> connections,
               std::chrono::milliseconds gone_after);

    // Readable when one of them has something to say.
    [[nodiscard]] int descriptor() const noexcept { return ready_.get(); }

    // A plan in which the first `count` of them, with the leader, are ranks `first`, `first` + 1, ….
    void begin(std::uint64_t plan, std::uint32_t first, std::uint32_t count);
    void hear();
    void look_for_silence(Time::time_point now);
    void say(const Order& order);

    // What all of them have come to, with `own`, the leader's beat, where that is to be counted.
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
    std::vector<std::unique_ptr<Other>> others_;  // by place; none for the leader
    Descriptor ready_;                            // an epoll of their connections
    Silence silence_;
    std::uint64_t plan_ = 0;
    std::uint32_t first_ = 0, count_ = 0;
    std::uint32_t lost_ = kNobody;  // the first of them
    Loss loss_ = Loss::none;
    FailureText failure_{};
};

}  // namespace strakes
