// Measures the silence of several peers. Only time during which this process listened counts. The silence of a peer
// that has not begun the plan restarts whenever another peer begins.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace strakes {

// Accepted range of the environment variable STRAKES_SILENCE_S.
constexpr std::chrono::seconds kShortestSilence{3}, kLongestSilence{3600};

class Silence {
  public:
    using Time = std::chrono::steady_clock;

    Silence(std::size_t others, std::chrono::milliseconds gone_after, Time::time_point now)
        : others_(others), gone_after_(gone_after), looked_at_(now) {}

    // Called when a plan was announced, which no peer has begun yet.
    void begin(Time::time_point now) {
        looked_at_ = now;
        last_begun_ = listened_;
        for (Other& other : others_) other = {.heard = listened_, .begun = false};
    }

    // Called when a message of a peer has arrived. `begun`: the peer has begun the plan.
    void hear(std::size_t place, bool begun) {
        Other& other = others_[place];
        other.heard = listened_;
        if (begun && !other.begun) last_begun_ = listened_;
        other.begun |= begun;
    }

    // Adds the time since the last call, up to a second, because this process was stopped during a longer interval.
    // Must be called at least once a second, after hear() for all messages that have arrived.
    void look(Time::time_point now) {
        const Time::duration longest = std::min<Time::duration>(kLongestLook, gone_after_ / 4);
        listened_ += std::clamp(now - std::exchange(looked_at_, now), Time::duration::zero(), longest);
    }

    [[nodiscard]] bool has_begun(std::size_t place) const { return others_[place].begun; }
    [[nodiscard]] bool is_silent(std::size_t place) const { return of(place) > gone_after_ * 3 / 5; }
    [[nodiscard]] bool is_gone(std::size_t place) const { return of(place) > gone_after_; }

  private:
    static constexpr std::chrono::seconds kLongestLook{1};

    struct Other {
        Time::duration heard{};
        bool begun = false;
    };

    [[nodiscard]] Time::duration of(std::size_t place) const {
        const Other& other = others_[place];
        return listened_ - (other.begun ? other.heard : std::max(other.heard, last_begun_));
    }

    std::vector<Other> others_;
    std::chrono::milliseconds gone_after_;
    Time::time_point looked_at_;
    Time::duration listened_{}, last_begun_{};
};

}  // namespace strakes
