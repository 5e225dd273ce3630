// For how long each of several others has said nothing. Only time counts in which this process itself listened, and
// while a plan begins nobody is behind as long as others are still coming to it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace strakes {

// What may be chosen.
constexpr std::chrono::seconds kShortestSilence{3}, kLongestSilence{3600};

class Silence {
  public:
    using Time = std::chrono::steady_clock;

    Silence(std::size_t others, std::chrono::milliseconds gone_after, Time::time_point now)
        : others_(others), gone_after_(gone_after), looked_at_(now) {}

    // A plan is called for: none of them has begun it.
    void begin(Time::time_point now) {
        looked_at_ = now;
        last_begun_ = listened_;
        for (Other& other : others_) other = {.heard = listened_, .begun = false};
    }

    // `begun`: it has begun the plan.
    void hear(std::size_t place, bool begun) {
        Other& other = others_[place];
        other.heard = listened_;
        if (begun && !other.begun) last_begun_ = listened_;
        other.begun |= begun;
    }

    // After everything that has come was heard, at least once a second: of a longer time this process was kept from
    // running, and may have kept others from it.
    void look(Time::time_point now) {
        const Time::duration longest = std::min<Time::duration>(kLongestLook, gone_after_ / 4);
        listened_ += std::clamp(now - std::exchange(looked_at_, now), Time::duration::zero(), longest);
    }

    [[nodiscard]] bool has_begun(std::size_t place) const { return others_[place].begun; }
    // It is called silent before it is taken for gone.
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
