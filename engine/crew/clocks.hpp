// A common timeline for all processes. The processes of a node share a clock, and each node compares its clock with the
// clock of rank 0's node.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "crew/crowd.hpp"
#include "measure/clock.hpp"
#include "system/bytes.hpp"
#include "team/post.hpp"

namespace strakes {

// Largest difference between the rates of two clocks: 100e-6 for each crystal, and a few 1e-6 for the calibration.
inline constexpr std::uint64_t kMostDriftPerMillion = 200;

[[nodiscard]] constexpr std::uint64_t drift_ns(std::uint64_t time_ns) noexcept {
    constexpr std::uint64_t kMillion = 1'000'000;
    return time_ns / kMillion * kMostDriftPerMillion +
           (time_ns % kMillion * kMostDriftPerMillion + kMillion - 1) / kMillion;
}

struct ClockStanding {
    std::int64_t offset_ns = 0;        // rank 0's clock minus this clock
    std::uint64_t uncertainty_ns = 0;  // largest error of the offset; 0: both are the same clock
    std::uint64_t at_ns = 0;           // when the offset was estimated, by this clock

    [[nodiscard]] std::uint64_t uncertainty_at(std::uint64_t now) const noexcept {
        return uncertainty_ns == 0 ? 0 : uncertainty_ns + drift_ns(elapsed(at_ns, now));
    }
};

// An interval that contains another clock's reading minus this clock's reading: the intersection of the intervals of
// all answers (Cristian 1989; Marzullo, Owicki 1983). It widens with time, since clocks drift.
class ClockRelation {
  public:
    // Readings in nanoseconds.
    struct Answer {
        std::uint64_t asked;   // reading of this clock before the question
        std::uint64_t theirs;  // reading of the other clock
        std::uint64_t heard;   // reading of this clock after the answer
    };
    // Intersects the interval with that of an answer. Must be called in the order of the answers. If an answer
    // contradicts earlier answers, a clock was stepped, and the answer replaces them.
    void learn(const Answer& answer) noexcept {
        // The clocks may drift between the reading and the arrival of the answer.
        const auto meanwhile = static_cast<std::int64_t>(drift_ns(elapsed(answer.asked, answer.heard)));
        const auto low = static_cast<std::int64_t>(answer.theirs - answer.heard) - meanwhile;
        const auto high = static_cast<std::int64_t>(answer.theirs - answer.asked) + meanwhile;
        const auto since = static_cast<std::int64_t>(drift_ns(elapsed(at_, answer.heard)));
        const std::int64_t both_low = std::max(low, low_ - since);
        const std::int64_t both_high = std::min(high, high_ + since);
        const bool agree = known_ && both_low <= both_high;
        low_ = agree ? both_low : low;
        high_ = agree ? both_high : high;
        at_ = answer.heard;
        known_ = true;
    }

    // Returns the offset of this clock from rank 0's at the last answer: the midpoint of the interval plus the offset
    // of the other clock. `theirs` holds the other clock's offset and its uncertainty at the reading.
    [[nodiscard]] ClockStanding standing(const ClockStanding& theirs) const noexcept {
        // The midpoint is rounded down, so its uncertainty is rounded up.
        return {.offset_ns = low_ + (high_ - low_) / 2 + theirs.offset_ns,
                .uncertainty_ns = static_cast<std::uint64_t>((high_ - low_ + 1) / 2) + theirs.uncertainty_ns,
                .at_ns = at_};
    }

  private:
    bool known_ = false;
    std::int64_t low_ = 0, high_ = 0;
    std::uint64_t at_ = 0;  // time of the last answer by this clock
};

class Clocks {
  public:
    using Rank = Post::Rank;

    // Collective over all processes.
    Clocks(Post& post, const Crowd& crowd) : post_(post), crowd_(crowd) {
        // All processes of a node use the leader's clock: the counters of the cores agree, but the processes have
        // calibrated slightly different rates.
        const Node& node = crowd.node_of(post.rank());
        static_assert(std::is_trivially_copyable_v<Clock>);
        if (post.rank() == node.ranks.front()) {
            const std::string bytes(reinterpret_cast<const char*>(&timeline_.clock), sizeof(Clock));
            for (std::size_t i = 1; i < node.ranks.size(); ++i) post.send(node.ranks[i], bytes);
        } else {
            post.receive(node.ranks.front(), Post::Wait::patient)
                .copy(reinterpret_cast<char*>(&timeline_.clock), sizeof(Clock));
        }
        std::vector<Rank> everybody(crowd.size());
        for (Rank rank = 0; rank < crowd.size(); ++rank) everybody[rank] = rank;
        compare(everybody);
    }

    // Compares drifting clocks again. Collective over `ranks`: the first processes of each of the first nodes.
    void compare(std::span<const Rank> ranks) {
        std::vector<Rank> leaders, others_here;
        for (const Rank rank : ranks) {
            if (rank == crowd_.leader_of(rank))
                leaders.push_back(rank);
            else if (crowd_.leader_of(rank) == post_.rank())
                others_here.push_back(rank);
        }
        if (leaders.size() == 1) return;
        const Rank leader = crowd_.leader_of(post_.rank());
        if (post_.rank() != leader) {
            take(Unpacker(post_.receive(leader, Post::Wait::patient)).get<ClockStanding>());
            return;
        }
        const auto mine = static_cast<std::size_t>(std::ranges::find(leaders, leader) - leaders.begin());
        const std::size_t lowest = mine == 0 ? std::bit_ceil(leaders.size()) : mine & (~mine + 1);
        if (mine != 0) ask(leaders[mine - lowest]);
        for (std::size_t step = lowest / 2; step > 0; step /= 2)
            if (step < leaders.size() - mine) answer(leaders[mine + step]);
        Packer packer;
        packer.put(standing_);
        const std::string packed = packer.take();
        for (const Rank other : others_here) post_.send(other, packed);
    }
    [[nodiscard]] bool stale() const noexcept { return elapsed(standing_.uncertainty_ns, uncertainty_ns()) > kStaleNs; }

    [[nodiscard]] const Timeline& timeline() const noexcept { return timeline_; }
    [[nodiscard]] std::uint64_t uncertainty_ns() const noexcept { return standing_.uncertainty_at(now()); }

  private:
    // Round trips of the first comparison. Later ones may stop earlier, at 1.25 times the uncertainty of the first.
    static constexpr int kMostQuestions = 16;
    static constexpr int kFewestQuestions = 3;
    // A clock is compared again once its uncertainty has grown by this drift, which takes at least half a second.
    static constexpr std::uint64_t kStaleNs = 100'000;

    void answer(Rank child) {
        while (!post_.receive(child, Post::Wait::eager).empty()) {
            Packer packer;
            const std::uint64_t read = now();
            packer.put(read);
            packer.put(ClockStanding{
                .offset_ns = standing_.offset_ns, .uncertainty_ns = standing_.uncertainty_at(read), .at_ns = read});
            post_.send(child, packer.take());
        }
    }
    void ask(Rank parent) {
        bool enough = false;
        for (int i = 0; i < kMostQuestions && !enough; ++i) {
            const std::uint64_t asked = now();
            post_.send(parent, "?");
            const std::string said = post_.receive(parent, Post::Wait::eager);
            const std::uint64_t heard = now();
            Unpacker unpacker(said);
            to_parent_.learn({.asked = asked, .theirs = unpacker.get<std::uint64_t>(), .heard = heard});
            take(to_parent_.standing(unpacker.get<ClockStanding>()));
            enough = i + 1 >= kFewestQuestions && standing_.uncertainty_ns <= settled_ns_ + settled_ns_ / 4;
        }
        if (settled_ns_ == 0) settled_ns_ = standing_.uncertainty_ns;
        post_.send(parent, {});
    }
    void take(const ClockStanding& standing) {
        standing_ = standing;
        timeline_.offset_ns = standing.offset_ns;
    }
    [[nodiscard]] std::uint64_t now() const noexcept { return timeline_.clock.to_ns(timeline_.clock.now()); }

    Post& post_;
    const Crowd& crowd_;
    Timeline timeline_;
    ClockStanding standing_;        // offset of this node's clock from rank 0's
    ClockRelation to_parent_;       // offset from another node's clock; used by the leader of a node
    std::uint64_t settled_ns_ = 0;  // the uncertainty after the first comparison
};

}  // namespace strakes
