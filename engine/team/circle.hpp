// Circle: collective operations among several processes, in ceil(log2(processes)) steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "team/post.hpp"

namespace strakes {

// Members are numbered from 0; `ranks` are their ranks in the post. All members must make the same calls in the same
// order.
class Circle {
  public:
    using Rank = Post::Rank;

    Circle(Post& post, std::vector<Rank> ranks, Rank mine) : post_(post), ranks_(std::move(ranks)), mine_(mine) {}

    [[nodiscard]] Rank mine() const noexcept { return mine_; }
    [[nodiscard]] Rank size() const noexcept { return static_cast<Rank>(ranks_.size()); }

    // Return the maximum over all members. Also a barrier.
    [[nodiscard]] std::uint64_t most(std::uint64_t mine, Post::Wait wait = Post::Wait::patient);
    [[nodiscard]] std::uint64_t least(std::uint64_t mine) { return ~most(~mine); }
    // Return the texts of all members, by member.
    [[nodiscard]] std::vector<std::string> all(std::string_view mine);
    // Return the texts of all members at member 0, and nothing elsewhere. Moves less data than all().
    [[nodiscard]] std::vector<std::string> to_first(std::string_view mine);
    // Return member 0's text.
    [[nodiscard]] std::string from_first(std::string mine);

    void send(Rank to, std::string_view bytes) { post_.send(ranks_[to], bytes); }
    [[nodiscard]] std::string receive(Rank from) { return post_.receive(ranks_[from], Post::Wait::patient); }

  private:
    [[nodiscard]] Rank after(Rank distance) const noexcept { return ranks_[(mine_ + distance) % size()]; }
    [[nodiscard]] Rank before(Rank distance) const noexcept { return ranks_[(mine_ + size() - distance) % size()]; }

    Post& post_;
    std::vector<Rank> ranks_;
    Rank mine_;
};

}  // namespace strakes
