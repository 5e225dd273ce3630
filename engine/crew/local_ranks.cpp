// Combines the heartbeats of a node's ranks: sums, the latest phase, and the rank that is furthest behind.
#include "crew/local_ranks.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "workload/workload.hpp"

namespace strakes {

namespace {

constexpr std::string_view kStarting = "starting";

}  // namespace

LocalRanks::LocalRanks(std::vector<std::uint32_t> ranks, std::vector<Descriptor> connections,
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

void LocalRanks::begin(std::uint64_t plan, std::uint32_t first, std::uint32_t count) {
    plan_ = plan;
    first_ = first;
    count_ = count;
    silence_.begin(Time::now());
}

void LocalRanks::hear() {
    std::array<epoll_event, 64> ready{};
    for (int count = static_cast<int>(ready.size()); count == static_cast<int>(ready.size());) {
        count = ::epoll_wait(ready_.get(), ready.data(), static_cast<int>(ready.size()), 0);
        for (int i = 0; i < count; ++i) hear(ready.at(static_cast<std::size_t>(i)).data.u32);
    }
}

void LocalRanks::hear(std::size_t place) {
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

// A rank that has finished its part sends no more heartbeats and counts as heard.
void LocalRanks::look_for_silence(Time::time_point now) {
    silence_.look(now);
    for (std::size_t place = 0; place < others_.size() && takes_part(place); ++place) {
        if (!others_[place]) continue;
        const Beat& beat = others_[place]->beat;
        if (beat.plan == plan_ && beat.phase == 0) silence_.hear(place, true);
        if (silence_.is_gone(place)) lose(place, Loss::silent, {});
    }
}

void LocalRanks::lose(std::size_t place, Loss loss, const FailureText& why) {
    if (loss_ != Loss::none) return;
    lost_ = ranks_[place];
    loss_ = loss;
    failure_ = why;
}

void LocalRanks::say(const Order& order) {
    for (const auto& other : others_)
        if (other) other->wire.say(order);
}

NodeBeat LocalRanks::sum(const Beat* own) const {
    NodeBeat node;
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

void LocalRanks::add(NodeBeat& node, std::size_t place, const Beat& beat) const {
    node.signalled |= beat.signalled;
    const bool begun = beat.plan == plan_;
    if (!takes_part(place) || (begun && beat.phase == 0)) return;
    const bool silent = others_[place] && silence_.is_silent(place);
    if (silent && node.silent_ranks < NodeBeat::kMostSilent) node.silent.at(node.silent_ranks++) = ranks_[place];
    // The work of a rank in an earlier phase does not count for this phase.
    const bool here = begun && beat.phase == node.phase;
    const std::uint64_t operations = here ? beat.operations : 0;
    const std::string_view stage = begun ? view_of(beat.stage) : kStarting;
    const bool waiting = stage == kWaiting;
    if (begun) {
        node.halt = std::max(node.halt, beat.halt);
        node.finished_phases = std::max(node.finished_phases, beat.finished_phases);
    }
    if (here) {
        node.operations += beat.operations;
        node.bytes += beat.bytes;
        node.finished_ranks += beat.finished;
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

}  // namespace strakes
