// Makes teams of processes.
#include "crew/process_crew.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <utility>

#include "crew/crew.hpp"
#include "system/processors.hpp"

namespace strakes {

namespace {

// A rank takes 59 KiB (measured), so these take 240 MiB, and are made within a second, during which nothing is answered.
constexpr std::uint32_t kMostThreads = 4096;

}  // namespace

std::optional<Crew::Lack> ThreadCrew::lacks(const Plan& plan) const {
    if (plan.ranks > kMostThreads) {
        return Lack{{.what = "the plan has too many ranks for one process",
                     .path = {},
                     .operation = {},
                     .why = std::to_string(plan.ranks) + " ranks; at most " + std::to_string(kMostThreads) +
                            " can be threads of one process",
                     .error_name = {},
                     .remedy = "Use fewer ranks, or start them as processes: --launcher mpi."},
                    "team.ranks"};
    }
    if (!plan.ranks_per_node || *plan.ranks_per_node >= plan.ranks) return std::nullopt;
    return Lack{{.what = "there is only one node, but the plan asks for more",
                 .path = {},
                 .operation = {},
                 .why = "ranks_per_node is " + std::to_string(*plan.ranks_per_node) + " of " +
                        std::to_string(plan.ranks) + " ranks, all of which are threads here",
                 .error_name = {},
                 .remedy = "Use a launcher that starts processes on several nodes, or leave ranks_per_node out."},
                "team.ranks_per_node"};
}

std::unique_ptr<Team> ThreadCrew::team_for(const PlanRequest& request) {
    const Plan& plan = request.plan;
    return std::make_unique<Team>(plan.ranks, plan.ranks, plan.placement.crowds(plan.ranks));
}

std::optional<Crew::Lack> ProcessCrew::lacks(const Plan& plan) const {
    const std::size_t there = world_.crowd.members_for(plan).size();
    if (there >= plan.ranks) return std::nullopt;
    const bool per_node = plan.ranks_per_node && *plan.ranks_per_node * world_.crowd.nodes().size() < plan.ranks;
    std::string why = std::to_string(world_.crowd.size()) + " processes on " +
                      std::to_string(world_.crowd.nodes().size()) + " nodes were started";
    if (plan.ranks_per_node) why += ", of which " + std::to_string(there) + " fit into ranks_per_node";
    return Lack{{.what = "the plan asks for " + std::to_string(plan.ranks) + " ranks, which are more than there are",
                 .path = {},
                 .operation = {},
                 .why = std::move(why),
                 .error_name = {},
                 .remedy = per_node ? "Use more hosts (--hosts), or a larger ranks_per_node."
                                    : "Start more processes (--ranks), or use fewer ranks in the plan."},
                per_node ? "team.ranks_per_node" : "team.ranks"};
}

void ProcessCrew::nudge() {
    constexpr std::uint64_t kOne = 1;
    static_cast<void>(::write(news_, &kOne, sizeof kOne));
}

void ProcessCrew::fail(const std::string& why) {
    {
        const std::lock_guard lock(failure_mutex_);
        if (failure_.empty()) failure_ = why;
    }
    nudge();
}

std::string ProcessCrew::failure() const {
    const std::lock_guard lock(failure_mutex_);
    return failure_;
}

std::optional<Team::Rank> ProcessCrew::rank_in_plan(Crowd::Rank rank) const {
    if (parts_.empty()) return std::nullopt;
    const Part part = part_of(world_.crowd.number_of_node(rank));
    const std::size_t place = world_.crowd.place_of(rank);
    if (place >= part.count) return std::nullopt;
    return part.first + static_cast<Team::Rank>(place);
}

std::string ProcessCrew::host_of(Team::Rank rank) const {
    return rank < ranks_.size() ? world_.crowd.node_of(ranks_[rank]).host : std::string();
}

std::unique_ptr<Team> ProcessCrew::make_team(const Plan& plan) {
    ranks_ = world_.crowd.members_for(plan);
    parts_.assign(world_.crowd.nodes().size(), {});
    for (Team::Rank rank = 0; rank < ranks_.size(); ++rank) {
        Part& part = parts_[world_.crowd.number_of_node(ranks_[rank])];
        if (part.count++ == 0) part.first = rank;
    }
    const auto here = std::ranges::find(ranks_, world_.post.rank());
    if (here == ranks_.end()) return nullptr;
    const auto mine = static_cast<Team::Rank>(here - ranks_.begin());
    members_ = std::make_unique<Members>(world_.performer, world_.post, world_.crowd, world_.clocks, ranks_, mine,
                                         plan.placement);
    return std::make_unique<Team>(static_cast<Team::Rank>(ranks_.size()), mine, *members_);
}

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
