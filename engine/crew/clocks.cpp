// Cristian's method (Distributed Computing 3, 1989): of several questions and answers the one with the shortest way
// counts, and half of that way is the uncertainty. Nodes ask along a binomial tree.
#include "crew/clocks.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>

#include "system/bytes.hpp"

namespace strakes {

namespace {

constexpr int kQuestions = 16;

}  // namespace

Clocks::Clocks(Post& post, const Crowd& crowd) : post_(post), crowd_(crowd) {
    // The counters of a node's cores agree, the rates that its processes have calibrated do not.
    const Node& node = crowd.node_of(post.rank());
    static_assert(std::is_trivially_copyable_v<Clock>);
    if (post.rank() == node.ranks.front()) {
        const std::string bytes(reinterpret_cast<const char*>(&timeline_.clock), sizeof(Clock));
        for (std::size_t i = 1; i < node.ranks.size(); ++i) post.send(node.ranks[i], bytes);
    } else {
        post.receive(node.ranks.front(), Post::Wait::patient)
            .copy(reinterpret_cast<char*>(&timeline_.clock), sizeof(Clock));
    }
    compare();
}

void Clocks::compare() {
    if (crowd_.nodes().size() == 1) return;
    const Node& node = crowd_.node_of(post_.rank());
    if (post_.rank() != node.ranks.front()) {
        const std::string said = post_.receive(node.ranks.front(), Post::Wait::patient);
        Unpacker unpacker(said);
        timeline_.offset_ns = unpacker.get<std::int64_t>();
        uncertainty_ns_ = unpacker.get<std::uint64_t>();
        return;
    }
    compare_leaders();
    Packer packer;
    packer.put(timeline_.offset_ns);
    packer.put(uncertainty_ns_);
    const std::string found = packer.take();
    for (std::size_t i = 1; i < node.ranks.size(); ++i) post_.send(node.ranks[i], found);
}

void Clocks::compare_leaders() {
    const std::vector<Post::Rank> leaders = crowd_.leaders();
    const auto mine = static_cast<std::size_t>(std::ranges::find(leaders, post_.rank()) - leaders.begin());
    const std::size_t lowest = mine == 0 ? std::bit_ceil(leaders.size()) : mine & (~mine + 1);
    if (mine != 0) ask(leaders[mine - lowest]);
    for (std::size_t step = lowest / 2; step > 0; step /= 2)
        if (step < leaders.size() - mine) answer(leaders[mine + step]);
}

void Clocks::answer(Post::Rank child) {
    for (int i = 0; i < kQuestions; ++i) {
        static_cast<void>(post_.receive(child, Post::Wait::eager));
        Packer packer;
        packer.put(timeline_.now());
        packer.put(uncertainty_ns_);
        post_.send(child, packer.take());
    }
}

void Clocks::ask(Post::Rank parent) {
    std::uint64_t shortest = UINT64_MAX;
    const Timeline own{.clock = timeline_.clock, .offset_ns = 0};
    for (int i = 0; i < kQuestions; ++i) {
        const std::uint64_t before = own.now();
        post_.send(parent, "?");
        const std::string said = post_.receive(parent, Post::Wait::eager);
        const std::uint64_t after = own.now();
        Unpacker unpacker(said);
        const auto theirs = unpacker.get<std::uint64_t>();
        const std::uint64_t way = elapsed(before, after);
        if (way >= shortest) continue;
        shortest = way;
        timeline_.offset_ns = static_cast<std::int64_t>(theirs - (before + way / 2));
        uncertainty_ns_ = unpacker.get<std::uint64_t>() + way / 2;
    }
}

}  // namespace strakes
