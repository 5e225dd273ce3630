// The start line: a moment that is still to come when the last of them hears of it.
#include "crew/members.hpp"

#include <algorithm>
#include <ctime>
#include <thread>
#include <utility>

namespace strakes {

namespace {

constexpr std::uint64_t kShortestLead = 200'000;
constexpr std::uint64_t kLongestLead = 200'000'000;
// A sleeper comes back late by up to this much, so the rest of the way is spent looking at the clock.
constexpr std::uint64_t kSleepIsLate = 150'000;

void sleep_ns(std::uint64_t ns) {
    const timespec pause{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    ::nanosleep(&pause, nullptr);
}

}  // namespace

Members::Members(Performer& performer, Post& post, const Crowd& crowd, std::vector<Rank> ranks, Rank mine,
                 const Timeline& timeline)
    : performer_(performer), circle_(post, ranks, mine), timeline_(timeline) {
    const auto& here = crowd.node_of(post.rank()).ranks;
    const auto is_here = [&here](Rank rank) { return std::ranges::binary_search(here, rank); };
    ranks_on_node_ = static_cast<Rank>(std::ranges::count_if(ranks, is_here));
    leads_node_ = *std::ranges::find_if(ranks, is_here) == post.rank();
    std::vector<std::uint32_t> nodes;
    nodes.reserve(ranks.size());
    for (const Rank rank : ranks) nodes.push_back(crowd.number_of_node(rank));
    libraries_ = post.libraries(ranks);
    exchange_ = post.exchange(circle_, std::move(ranks), std::move(nodes));
}

void Members::start_line() {
    const std::uint64_t asked = timeline_.now();
    static_cast<void>(circle_.most(0));
    const std::uint64_t told = timeline_.now();
    const std::uint64_t lead = std::clamp(2 * elapsed(asked, told), kShortestLead, kLongestLead);
    const std::uint64_t start = circle_.most(told + lead);
    // Where there are more ranks than processors, looking would keep others from coming.
    const bool may_look = ranks_on_node_ <= std::max(1U, std::thread::hardware_concurrency());
    const std::uint64_t left = elapsed(timeline_.now(), start);
    if (!may_look)
        sleep_ns(left);
    else if (left > kSleepIsLate)
        sleep_ns(left - kSleepIsLate);
    while (may_look && timeline_.now() < start) {
    }
}

}  // namespace strakes
