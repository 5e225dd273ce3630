// Start line: the ranks agree on a start time that is still ahead when the last rank learns of it.
#include "crew/members.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <utility>

#include "system/aside.hpp"
#include "system/processors.hpp"

namespace strakes {

namespace {

// Limits, in nanoseconds, of the time from the agreement to the start.
constexpr std::uint64_t kShortestLead = 200'000;
constexpr std::uint64_t kLongestLead = 5'000'000;
// A sleep may end late by up to this many nanoseconds, so the rank polls the clock for the rest of the wait.
constexpr std::uint64_t kSleepIsLate = 150'000;

// Sleeps to an absolute time, so that a delay before the call does not prolong the sleep.
void sleep_for(std::uint64_t ns) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    const std::uint64_t end = Clock::monotonic_ns() + ns;
    const timespec until{static_cast<time_t>(end / kSecond), static_cast<long>(end % kSecond)};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
}

// Returns the circle of the ranks on this machine.
Circle circle_here(Post& post, const Crowd& crowd, const std::vector<Post::Rank>& ranks) {
    std::vector<Post::Rank> here = crowd.share_of(post.rank(), ranks).ranks;
    const auto mine = static_cast<Post::Rank>(std::ranges::find(here, post.rank()) - here.begin());
    return {post, std::move(here), mine};
}

// Moves this rank to a free processor if a lower rank of this machine runs on its processor.
void step_aside(Circle& here, std::optional<Aside>& aside) {
    const Processors mine = Processors::current();
    Processors before, all;
    const std::vector<std::string> said = here.all(mine.bytes());
    for (std::size_t place = 0; place < said.size(); ++place) {
        all.add(Processors(said[place]));
        if (place < here.mine()) before.add(Processors(said[place]));
    }
    if (before.has_all(mine)) aside.emplace(Processors::allowed(), all);
}

}  // namespace

Members::Members(Performer& performer, Post& post, const Crowd& crowd, Clocks& clocks, std::vector<Rank> ranks,
                 Rank mine, const Placement& placement)
    : performer_(performer),
      clocks_(clocks),
      ranks_(std::move(ranks)),
      circle_(post, ranks_, mine),
      on_machine_(circle_here(post, crowd, ranks_)) {
    const auto& here = crowd.node_of(post.rank()).ranks;
    const auto is_here = [&here](Rank rank) { return std::ranges::binary_search(here, rank); };
    ranks_on_node_ = static_cast<Rank>(std::ranges::count_if(ranks_, is_here));
    leads_node_ = *std::ranges::find_if(ranks_, is_here) == post.rank();
    crowded_ = crowd.share_of(post.rank(), ranks_).processors.too_few_for(on_machine_.size()) ||
               placement.crowds(on_machine_.size());
    std::vector<std::uint32_t> nodes;
    nodes.reserve(ranks_.size());
    for (const Rank rank : ranks_) nodes.push_back(crowd.number_of_node(rank));
    std::vector<std::uint32_t> distinct = nodes;  // the ranks of a node are consecutive
    // Clang 14, which builds the fuzzer, cannot compile std::ranges::unique() of this standard library.
    nodes_ = static_cast<std::size_t>(std::unique(distinct.begin(), distinct.end()) - distinct.begin());
    libraries_ = post.libraries(ranks_);
    exchange_ = post.exchange(circle_, ranks_, std::move(nodes));
}

Start Members::start_line() {
    if (circle_.size() == 1) return {.begun = true};
    const auto most = [this](std::uint64_t mine) { return circle_.most(mine, Post::Wait::brisk); };
    // This barrier also wakes ranks from the patient wait before it.
    if (most(clocks_.stale() ? 1 : 0) != 0) clocks_.compare(ranks_);
    std::optional<Aside> aside;
    if (!crowded_ && on_machine_.size() > 1) step_aside(on_machine_, aside);
    // A barrier, so that late ranks do not count in the time of the next one.
    static_cast<void>(most(0));
    const Timeline& timeline = clocks_.timeline();
    const std::uint64_t asked = timeline.now();
    static_cast<void>(most(0));
    const std::uint64_t told = timeline.now();
    const std::uint64_t lead = std::clamp(2 * elapsed(asked, told), kShortestLead, kLongestLead);
    const std::uint64_t start = most(told + lead);
    const std::uint64_t left = elapsed(timeline.now(), start);
    // With more ranks than processors, polling would delay the other ranks.
    const std::uint64_t awake = crowded_ ? 0 : kSleepIsLate;
    if (left > awake) sleep_for(left - awake);
    while (timeline.now() < start) {
    }
    return {.begun = true, .clock_uncertainty_ns = clocks_.uncertainty_ns(), .crowded = crowded_};
}

}  // namespace strakes
