// The crew of the first process. It receives heartbeats from the leaders of nodes and from the ranks of this node, and
// sends orders to them.
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "crew/connections.hpp"
#include "crew/local_ranks.hpp"
#include "crew/process_crew.hpp"
#include "crew/silence.hpp"
#include "session/plan_watch.hpp"

namespace strakes {

class LeadingCrew final : public ProcessCrew {
  public:
    // A process or a node counts as lost after a silence of `gone_after`. Links that fail over may need a longer time
    // than the default.
    LeadingCrew(World& world, int news, Connections connections, std::chrono::milliseconds gone_after = kGoneAfter)
        : ProcessCrew(world, news),
          local_(world.crowd.node_of(0).ranks, std::move(connections.local), gone_after),
          ready_(::epoll_create1(EPOLL_CLOEXEC)),
          gone_after_(gone_after),
          silence_(connections.nodes.size(), gone_after, Time::now()) {
        const auto add = [this](int descriptor, std::uint32_t name) {
            epoll_event event{.events = EPOLLIN, .data = {.u32 = name}};
            ::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, descriptor, &event);
        };
        add(local_.descriptor(), kOwnNode);
        for (std::uint32_t node = 0; node < connections.nodes.size(); ++node) {
            nodes_.push_back(nullptr);
            if (!connections.nodes[node]) continue;
            outlast_silence(connections.nodes[node].get(), gone_after);
            add(connections.nodes[node].get(), node);
            nodes_.back() = std::make_unique<OtherNode>(
                OtherNode{.wire = Wire<Order, Beat>(std::move(connections.nodes[node])), .beat = {}});
        }
    }
    ~LeadingCrew() override {
        {
            const std::lock_guard lock(telling_);
            over_ = true;
        }
        told_all_.notify_all();
        if (teller_.joinable()) teller_.join();
    }
    LeadingCrew(const LeadingCrew&) = delete;
    LeadingCrew& operator=(const LeadingCrew&) = delete;

    std::unique_ptr<Team> team_for(const PlanRequest& request) override {
        if (lacks(request.plan)) return make_team({.seed = 0, .ranks = 1, .ranks_per_node = {}, .phases = {}});
        ++number_;
        silence_.begin(Time::now());
        say_to_all({.plan = number_});
        if (!teller_.joinable()) teller_ = std::thread([this] { tell_again(); });
        world_.performer.perform([&] { static_cast<void>(world_.everybody().from_first(request.line)); });
        wait_for_call();
        std::unique_ptr<Team> team = make_team(request.plan);
        local_.begin(number_, part_of(0).first, part_of(0).count);
        return team;
    }
    [[nodiscard]] int descriptor() const override { return ready_.get(); }
    void attend(PlanWatch* plan) override {
        const auto now = Time::now();
        hear_all(plan);
        if (plan == nullptr) return;
        if (now - looked_at_ >= kListenEvery) look_for_silence(*plan, now);
        Order order = plan->order();
        order.plan = number_;
        if (order != told_) say_to_all(order);
    }
    void say_heartbeat(Output& output, const std::string& plan_id) override {
        enum class State : std::uint8_t { alive, silent, gone };
        std::vector<State> states(world_.crowd.size(), State::alive);
        const auto name_silent = [&states](const Beat& beat) {
            for (std::size_t i = 0; i < beat.silent_ranks; ++i) states[beat.silent.at(i)] = State::silent;
        };
        const Beat own = local_.sum(nullptr);
        name_silent(own);
        if (own.loss == Loss::ended) states[own.lost] = State::gone;
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            if (!nodes_[node]) continue;
            const OtherNode& other = *nodes_[node];
            const auto& ranks = world_.crowd.nodes()[node].ranks;
            name_silent(other.beat);
            if (other.beat.loss == Loss::ended) states[other.beat.lost] = State::gone;
            if (!other.wire.is_open())
                for (const Crowd::Rank rank : ranks) states[rank] = State::gone;
            else if (is_silent(node))
                for (std::size_t place = 0; place < part_of(node).count; ++place) states[ranks[place]] = State::silent;
        }
        Heartbeat heartbeat{.plan_id = plan_id, .alive = {}, .silent = {}, .gone = {}};
        for (Crowd::Rank rank = 0; rank < states.size(); ++rank) {
            const State state = states[rank];
            auto& list = state == State::alive    ? heartbeat.alive
                         : state == State::silent ? heartbeat.silent
                                                  : heartbeat.gone;
            list.push_back(rank);
        }
        strakes::say_heartbeat(output, heartbeat);
    }
    [[nodiscard]] std::optional<Gone> gone() const override { return gone_; }
    [[nodiscard]] bool signalled() const override { return signalled_; }
    // Pauses, because launchers lose the output that a process writes right before its end.
    void abandon() override {
        std::this_thread::sleep_for(kListenEvery);
        say_to_all({.plan = number_, .abandon = 1});
        std::this_thread::sleep_for(kListenEvery);
    }
    void dismiss() { say_to_all({.plan = number_, .leave = 1}); }

  private:
    static constexpr std::chrono::milliseconds kTellEvery{1000}, kListenEvery{200};
    static constexpr std::uint32_t kOwnNode = UINT32_MAX;  // epoll tag of this node's ranks

    struct OtherNode {
        Wire<Order, Beat> wire;
        Beat beat;
    };

    void hear_all(PlanWatch* plan) {
        std::array<epoll_event, 64> ready{};
        for (int count = static_cast<int>(ready.size()); count == static_cast<int>(ready.size());) {
            count = ::epoll_wait(ready_.get(), ready.data(), static_cast<int>(ready.size()), 0);
            for (int i = 0; i < count; ++i) {
                const std::uint32_t name = ready.at(static_cast<std::size_t>(i)).data.u32;
                if (name == kOwnNode)
                    hear_own_node(plan);
                else
                    hear(name, plan);
            }
        }
        if (const std::string mine = failure(); !mine.empty()) lose(world_.post.rank(), Loss::failed, mine);
    }
    void hear(std::size_t node, PlanWatch* plan) {
        OtherNode& other = *nodes_[node];
        other.wire.hear([&](const Beat& beat) {
            other.beat = beat;
            silence_.hear(node, beat.plan == number_);
            signalled_ |= beat.signalled != 0;
            take_loss(beat);
            if (plan != nullptr && beat.plan == number_) plan->hear(node, beat);
        });
        if (other.wire.is_open()) return;
        ::epoll_ctl(ready_.get(), EPOLL_CTL_DEL, other.wire.descriptor(), nullptr);
        if (other.beat.leaving == 0) lose(world_.crowd.nodes()[node].ranks.front(), Loss::ended, {});
    }
    void hear_own_node(PlanWatch* plan) {
        local_.hear();
        const Beat beat = local_.sum(nullptr);
        signalled_ |= beat.signalled != 0;
        take_loss(beat);
        if (plan != nullptr) plan->hear(0, beat);
    }
    // Waits until every process has received the request, including processes without a part in the plan. If a process
    // is lost, the engine ends with a message on standard error, because no plan has begun that could report the loss.
    void wait_for_call() {
        world_.performer.wait(kListenEvery, [this] {
            hear_all(nullptr);
            silence_.look(Time::now());
            for (std::size_t node = 0; node < nodes_.size(); ++node)
                if (nodes_[node] && !silence_.has_begun(node) && silence_.is_gone(node))
                    lose(world_.crowd.nodes()[node].ranks.front(), Loss::silent, {});
            if (!gone_) return;
            std::fprintf(stderr, "strakes-engine-mpi: %s: %s\n", gone_->failure.what.c_str(),
                         gone_->failure.why.c_str());
            abandon();
            ::_exit(1);
        });
    }
    // A node that has finished its part sends no more heartbeats, and never counts as silent.
    void look_for_silence(PlanWatch& plan, Time::time_point now) {
        looked_at_ = now;
        silence_.look(now);
        local_.look_for_silence(now);
        hear_own_node(&plan);
        for (std::size_t node = 0; node < nodes_.size(); ++node) {
            OtherNode* other = nodes_[node].get();
            const Part part = part_of(node);
            if (other == nullptr || part.count == 0) continue;
            if (other->beat.plan == number_ && other->beat.phase == 0) silence_.hear(node, true);
            plan.set_silent(node, is_silent(node), part.first);
            if (silence_.is_gone(node)) lose(world_.crowd.nodes()[node].ranks.front(), Loss::silent, {});
        }
    }
    [[nodiscard]] bool is_silent(std::size_t node) const { return part_of(node).count > 0 && silence_.is_silent(node); }
    void say_to_all(const Order& order) {
        const std::lock_guard lock(telling_);
        told_ = order;
        say_told();
    }
    void say_told() {
        local_.say(told_);
        for (const auto& node : nodes_)
            if (node) node->wire.say(told_);
    }
    // Repeats the order in a separate thread, so that this process is not silent while its output blocks.
    void tell_again() {
        std::unique_lock lock(telling_);
        while (!told_all_.wait_for(lock, kTellEvery, [this] { return over_; })) say_told();
    }
    void take_loss(const Beat& beat) {
        if (beat.loss != Loss::none) lose(beat.lost, beat.loss, view_of(beat.failure));
    }
    void lose(Crowd::Rank rank, Loss loss, std::string_view why) {
        if (gone_) return;
        std::string what = "a rank is gone", reason = "it ended without a message: it was killed, or it crashed";
        std::string remedy =
            "Find out on that node what ended or stopped the rank (the kernel log says when memory ran out), then "
            "run the plan again.";
        if (loss == Loss::silent) {
            what = "a rank does not answer";
            reason = "nothing was heard from it for " +
                     std::to_string(std::chrono::round<std::chrono::seconds>(gone_after_).count()) +
                     " s (STRAKES_SILENCE_S): it was stopped, or its node hangs or cannot be reached";
        } else if (loss == Loss::failed) {
            what = "a rank cannot go on";
            reason = why;
            remedy =
                "The file system is not the cause. Check MPI and its network on that node, then run the plan again.";
        }
        const std::string& host = world_.crowd.node_of(rank).host;
        gone_ = Gone{.rank = rank_in_plan(rank),
                     .host = host,
                     .failure = {.what = std::move(what),
                                 .why = "process " + std::to_string(world_.crowd.pid_of(rank)) + " on " + host +
                                        " (rank " + std::to_string(rank) + " of those started): " + std::move(reason),
                                 .remedy = std::move(remedy)}};
    }

    std::vector<std::unique_ptr<OtherNode>> nodes_;  // nodes by number; null for this node
    LocalRanks local_;
    Descriptor ready_;  // an epoll descriptor for the connections of nodes_ and local_
    Order told_;
    std::mutex telling_;  // protects told_, over_ and sends on the connections
    std::condition_variable told_all_;
    bool over_ = false;
    std::thread teller_;
    Time::time_point looked_at_;
    std::chrono::milliseconds gone_after_;
    Silence silence_;  // silence of the other nodes
    std::optional<Gone> gone_;
    bool signalled_ = false;
};

}  // namespace strakes
