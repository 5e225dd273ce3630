// Messages between processes: Post, which is all that the engine needs of MPI, and Circle, its collective operations.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "team/exchange.hpp"

namespace strakes {

class Circle;
class LibraryFiles;

class Post {
  public:
    using Rank = std::uint32_t;
    // How to wait. `patient` sleeps and leaves the processor to others. `brisk` sleeps only briefly, for consecutive
    // steps outside timed sections. `eager` polls without sleeping.
    enum class Wait : std::uint8_t { patient, brisk, eager };

    Post() = default;
    Post(const Post&) = delete;
    Post& operator=(const Post&) = delete;
    virtual ~Post() = default;

    [[nodiscard]] virtual Rank rank() const = 0;
    [[nodiscard]] virtual Rank size() const = 0;

    virtual void send(Rank to, std::string_view bytes) = 0;
    // Messages from one sender arrive in the order of sending.
    virtual std::string receive(Rank from, Wait wait) = 0;
    // Send and receive at the same time, so that processes may exchange data in a ring.
    virtual std::string swap(Rank to, std::string_view bytes, Rank from, Wait wait) = 0;

    // Return the exchange for the ranks of a plan. `ranks` are the ranks of the circle's members, `nodes` the numbers
    // of their nodes.
    virtual std::unique_ptr<Exchange> exchange(Circle circle, std::vector<Rank> ranks,
                                               std::vector<std::uint32_t> nodes) = 0;
    // Return the MPI-based libraries for the same ranks.
    virtual std::unique_ptr<LibraryFiles> libraries(std::vector<Rank> ranks) = 0;
};

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
