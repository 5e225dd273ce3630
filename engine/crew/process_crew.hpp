// The crew whose ranks are processes. The first process holds the session and leads; the others follow its orders.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/library_file.hpp"
#include "crew/beat.hpp"
#include "crew/clocks.hpp"
#include "crew/connections.hpp"
#include "crew/crew.hpp"
#include "crew/crowd.hpp"
#include "system/placement.hpp"
#include "system/processors.hpp"
#include "team/post.hpp"
#include "team/team.hpp"

namespace strakes {

class Members final : public Processes {
  public:
    // `ranks` are the processes of the crowd that take part in the plan; this process is ranks[mine].
    Members(Performer& performer, Post& post, const Crowd& crowd, Clocks& clocks, std::vector<Rank> ranks, Rank mine,
            const Placement& placement)
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
        libraries_ = post.libraries(ranks_);
        exchange_ = post.exchange(circle_, ranks_, std::move(nodes));
    }

    void perform(std::function<void()> body) override { performer_.perform(std::move(body)); }
    void wait() override { performer_.wait(); }
    bool any(bool mine) override { return circle_.most(mine ? 1 : 0) != 0; }
    Start start_line() override {
        if (circle_.size() == 1) return {.begun = true};
        const auto most = [this](std::uint64_t mine) { return circle_.most(mine, Post::Wait::brisk); };
        // This barrier also wakes ranks that still sleep in an earlier call with Wait::patient.
        if (most(clocks_.stale() ? 1 : 0) != 0) clocks_.compare(ranks_);
        std::optional<Aside> aside;
        if (!crowded_ && on_machine_.size() > 1) step_aside(on_machine_, aside);
        // This barrier lets late ranks arrive, so that the duration of the next barrier does not include their delay.
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
    std::vector<std::string> all(std::string_view mine) override { return circle_.all(mine); }
    void send(Rank to, std::string_view bytes) override { circle_.send(to, bytes); }
    std::string receive(Rank from) override { return circle_.receive(from); }
    [[nodiscard]] Exchange& exchange() override { return *exchange_; }
    [[nodiscard]] LibraryFiles* libraries() override { return libraries_.get(); }
    [[nodiscard]] const Timeline& timeline() const override { return clocks_.timeline(); }
    [[nodiscard]] bool leads_node() const override { return leads_node_; }
    [[nodiscard]] Rank ranks_on_node() const override { return ranks_on_node_; }
    [[nodiscard]] Rank place_on_machine() const override { return on_machine_.mine(); }

  private:
    // Limits of the time from the agreement on a start time to the start, in nanoseconds.
    static constexpr std::uint64_t kShortestLead = 200'000;
    static constexpr std::uint64_t kLongestLead = 5'000'000;
    // A sleep may end late by up to this many nanoseconds, so the rank polls the clock for the rest of the wait.
    static constexpr std::uint64_t kSleepIsLate = 150'000;

    // Sleeps to an absolute time, so that a delay before the call does not prolong the sleep.
    static void sleep_for(std::uint64_t ns) {
        constexpr std::uint64_t kSecond = 1'000'000'000;
        const std::uint64_t end = Clock::monotonic_ns() + ns;
        const timespec until{static_cast<time_t>(end / kSecond), static_cast<long>(end % kSecond)};
        while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
        }
    }

    static Circle circle_here(Post& post, const Crowd& crowd, const std::vector<Post::Rank>& ranks) {
        std::vector<Post::Rank> here = crowd.share_of(post.rank(), ranks).ranks;
        const auto mine = static_cast<Post::Rank>(std::ranges::find(here, post.rank()) - here.begin());
        return {post, std::move(here), mine};
    }

    // Moves this rank to a free processor if a lower rank of this machine runs on its processor.
    static void step_aside(Circle& here, std::optional<Aside>& aside) {
        const Processors mine = Processors::current();
        Processors before, all;
        const std::vector<std::string> said = here.all(mine.bytes());
        for (std::size_t place = 0; place < said.size(); ++place) {
            all.add(Processors(said[place]));
            if (place < here.mine()) before.add(Processors(said[place]));
        }
        if (before.has_all(mine)) aside.emplace(Processors::allowed(), all);
    }

    Performer& performer_;
    Clocks& clocks_;
    std::vector<Rank> ranks_;
    Circle circle_;
    Circle on_machine_;
    bool leads_node_;
    Rank ranks_on_node_;
    bool crowded_;  // the machine has fewer processors than ranks
    std::unique_ptr<Exchange> exchange_;
    std::unique_ptr<LibraryFiles> libraries_;
};

class ProcessCrew : public Crew {
  public:
    // Default silence after which a process counts as lost. A working process sends a message every second, and a node
    // that hangs is detected in less than 10 s.
    static constexpr std::chrono::milliseconds kGoneAfter{8000};

    // `news` is the event descriptor that the watching thread waits for.
    ProcessCrew(World& world, int news) : world_(world), news_(news) {}

    [[nodiscard]] std::optional<Lack> lacks(const Plan& plan) const override {
        const std::size_t there = world_.crowd.members_for(plan).size();
        if (there >= plan.ranks) return std::nullopt;
        const bool per_node = plan.ranks_per_node && *plan.ranks_per_node * world_.crowd.nodes().size() < plan.ranks;
        std::string why = std::to_string(world_.crowd.size()) + " processes on " +
                          std::to_string(world_.crowd.nodes().size()) + " nodes were started";
        if (plan.ranks_per_node) why += ", of which " + std::to_string(there) + " fit into ranks_per_node";
        return Lack{
            {.what = "the plan asks for " + std::to_string(plan.ranks) + " ranks, which are more than there are",
             .why = std::move(why),
             .remedy = per_node ? "Use more hosts (--hosts), or a larger ranks_per_node."
                                : "Start more processes (--ranks), or use fewer ranks in the plan."},
            per_node ? "team.ranks_per_node" : "team.ranks"};
    }
    void nudge() override {
        constexpr std::uint64_t kOne = 1;
        static_cast<void>(::write(news_, &kOne, sizeof kOne));
    }
    [[nodiscard]] std::string host_of(Team::Rank rank) const override {
        return rank < ranks_.size() ? world_.crowd.node_of(ranks_[rank]).host : std::string();
    }

    // Reports that this process cannot continue. Later reasons are ignored. May be called by any thread.
    void fail(const std::string& why) {
        {
            const std::lock_guard lock(failure_mutex_);
            if (failure_.empty()) failure_ = why;
        }
        nudge();
    }

  protected:
    using Time = std::chrono::steady_clock;

    [[nodiscard]] std::string failure() const {
        const std::lock_guard lock(failure_mutex_);
        return failure_;
    }
    // Returns the team of a plan, or null if this process takes no part in the plan.
    std::unique_ptr<Team> make_team(const Plan& plan) {
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
    // The ranks of the plan on a node, which are the first processes of the node.
    struct Part {
        Team::Rank first = 0, count = 0;
    };
    [[nodiscard]] Part part_of(std::size_t node) const { return parts_[node]; }
    [[nodiscard]] std::optional<Team::Rank> rank_in_plan(Crowd::Rank rank) const {
        if (parts_.empty()) return std::nullopt;
        const Part part = part_of(world_.crowd.number_of_node(rank));
        const std::size_t place = world_.crowd.place_of(rank);
        if (place >= part.count) return std::nullopt;
        return part.first + static_cast<Team::Rank>(place);
    }

    World& world_;
    int news_;
    std::vector<Crowd::Rank> ranks_;  // rank of the plan -> number among all processes
    std::unique_ptr<Members> members_;
    std::uint64_t number_ = 0;  // number of the plan in this session

  private:
    std::vector<Part> parts_;  // ranks of the plan on each node
    mutable std::mutex failure_mutex_;
    std::string failure_;
};

}  // namespace strakes
