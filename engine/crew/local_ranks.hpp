// The ranks of one node, for its leader: combines their heartbeats (sums, the latest phase, and the rank that is
// furthest behind) and passes orders on to them.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "crew/beat.hpp"
#include "crew/silence.hpp"
#include "crew/wire.hpp"
#include "system/descriptor.hpp"
#include "workload/workload.hpp"

namespace strakes {

class LocalRanks {
  public:
    using Time = std::chrono::steady_clock;

    // `ranks`: numbers among all processes, the leader first. `connections`: in the same order, empty for the leader.
    LocalRanks(std::vector<std::uint32_t> ranks, std::vector<Descriptor> connections,
               std::chrono::milliseconds gone_after)
        : ranks_(std::move(ranks)),
          ready_(::epoll_create1(EPOLL_CLOEXEC)),
          silence_(ranks_.size(), gone_after, Time::now()) {
        for (std::uint32_t place = 0; place < connections.size(); ++place) {
            others_.push_back(nullptr);
            if (!connections[place]) continue;
            epoll_event event{.events = EPOLLIN, .data = {.u32 = place}};
            ::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, connections[place].get(), &event);
            others_.back() =
                std::make_unique<Other>(Other{.wire = Wire<Order, Beat>(std::move(connections[place])), .beat = {}});
        }
    }

    [[nodiscard]] int descriptor() const noexcept { return ready_.get(); }

    // Begins a plan. The first `count` ranks, including the leader, are the plan's ranks `first`, `first` + 1, ….
    void begin(std::uint64_t plan, std::uint32_t first, std::uint32_t count) {
        plan_ = plan;
        first_ = first;
        count_ = count;
        silence_.begin(Time::now());
    }
    void hear() {
        std::array<epoll_event, 64> ready{};
        for (int count = static_cast<int>(ready.size()); count == static_cast<int>(ready.size());) {
            count = ::epoll_wait(ready_.get(), ready.data(), static_cast<int>(ready.size()), 0);
            for (int i = 0; i < count; ++i) hear(ready.at(static_cast<std::size_t>(i)).data.u32);
        }
    }
    // A rank that has finished its part sends no more heartbeats, and never counts as silent.
    void look_for_silence(Time::time_point now) {
        silence_.look(now);
        for (std::size_t place = 0; place < others_.size() && takes_part(place); ++place) {
            if (!others_[place]) continue;
            const Beat& beat = others_[place]->beat;
            if (beat.plan == plan_ && beat.phase == 0) silence_.hear(place, true);
            if (silence_.is_gone(place)) lose(place, Loss::silent, {});
        }
    }
    void say(const Order& order) {
        for (const auto& other : others_)
            if (other) other->wire.say(order);
    }

    // Returns the combined heartbeat. Includes the leader's heartbeat `own`, unless `own` is null.
    [[nodiscard]] Beat sum(const Beat* own) const {
        Beat node;
        node.plan = plan_;
        node.lost = lost_;
        node.loss = loss_;
        node.failure = failure_;
        const auto raise_phase = [&](const Beat& beat) {
            if (beat.plan == plan_) node.phase = std::max(node.phase, beat.phase);
        };
        if (own != nullptr) raise_phase(*own);
        for (std::size_t place = 0; place < others_.size() && takes_part(place); ++place)
            if (others_[place]) raise_phase(others_[place]->beat);
        if (own != nullptr) add(node, 0, *own);
        for (std::size_t place = 0; place < others_.size(); ++place)
            if (others_[place]) add(node, place, others_[place]->beat);
        if (own != nullptr && node.loss == Loss::none && !view_of(own->failure).empty()) {
            node.lost = ranks_.front();
            node.loss = Loss::failed;
            node.failure = own->failure;
        }
        return node;
    }

  private:
    struct Other {
        Wire<Order, Beat> wire;
        Beat beat;
    };

    [[nodiscard]] bool takes_part(std::size_t place) const noexcept { return place < count_; }
    void hear(std::size_t place) {
        Other& other = *others_[place];
        other.wire.hear([&](const Beat& beat) {
            other.beat = beat;
            silence_.hear(place, beat.plan == plan_);
        });
        if (!view_of(other.beat.failure).empty()) lose(place, Loss::failed, other.beat.failure);
        if (other.wire.is_open()) return;
        ::epoll_ctl(ready_.get(), EPOLL_CTL_DEL, other.wire.descriptor(), nullptr);
        if (other.beat.leaving == 0) lose(place, Loss::ended, {});
    }
    void lose(std::size_t place, Loss loss, const FailureText& why) {
        if (loss_ != Loss::none) return;
        lost_ = ranks_[place];
        loss_ = loss;
        failure_ = why;
    }
    void add(Beat& node, std::size_t place, const Beat& beat) const {
        node.signalled |= beat.signalled;
        const bool begun = beat.plan == plan_;
        if (!takes_part(place) || (begun && beat.phase == 0)) return;
        const bool silent = others_[place] && silence_.is_silent(place);
        if (silent && node.silent_ranks < Beat::kMostSilent) node.silent.at(node.silent_ranks++) = ranks_[place];
        const bool here = begun && beat.phase == node.phase;
        const std::uint64_t operations = here ? beat.operations : 0;
        const std::string_view stage = begun ? view_of(beat.stage) : "starting";
        const bool waiting = stage == kWaiting;
        if (begun) node.halt = std::max(node.halt, beat.halt);
        if (here) {
            node.operations += beat.operations;
            node.bytes += beat.bytes;
            node.finished_ranks += beat.finished_ranks;
        }
        node.waiting_ranks += waiting ? 1 : 0;
        if (node.slowest != kNobody &&
            std::tuple{!silent, waiting, operations} >=
                std::tuple{node.slowest_silent == 0, node.slowest_waiting != 0, node.slowest_operations})
            return;
        node.slowest = first_ + static_cast<std::uint32_t>(place);
        node.slowest_operations = operations;
        node.slowest_silent = silent ? 1 : 0;
        node.slowest_waiting = waiting ? 1 : 0;
        node.stage = {};
        stage.copy(node.stage.data(), node.stage.size() - 1);
    }

    std::vector<std::uint32_t> ranks_;
    std::vector<std::unique_ptr<Other>> others_;  // ranks by place in the node; null for the leader
    Descriptor ready_;                            // an epoll descriptor for the connections of others_
    Silence silence_;
    std::uint64_t plan_ = 0;
    std::uint32_t first_ = 0, count_ = 0;
    std::uint32_t lost_ = kNobody;  // the first lost rank
    Loss loss_ = Loss::none;
    FailureText failure_{};
};

}  // namespace strakes
