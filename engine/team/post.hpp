// Messages between processes: Post, which is all that the engine needs of MPI, and Circle, its collective operations.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "system/bytes.hpp"
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
    virtual std::unique_ptr<LibraryFiles> libraries(std::vector<Rank> ranks) = 0;
};

// most() uses dissemination (Hensgen, Finkel, Manber 1988), which may count a value twice. all() uses Bruck's
// concatenation (Bruck et al. 1997). to_first() and from_first() use a binomial tree.
//
// Members are numbered from 0; `ranks` are their ranks in the post. All members must make the same calls in the same
// order.
class Circle {
  public:
    using Rank = Post::Rank;

    Circle(Post& post, std::vector<Rank> ranks, Rank mine) : post_(post), ranks_(std::move(ranks)), mine_(mine) {}

    [[nodiscard]] Rank mine() const noexcept { return mine_; }
    [[nodiscard]] Rank size() const noexcept { return static_cast<Rank>(ranks_.size()); }

    // Return the maximum over all members. Also a barrier.
    [[nodiscard]] std::uint64_t most(std::uint64_t mine, Post::Wait wait = Post::Wait::patient) {
        for (Rank distance = 1; distance < size(); distance *= 2) {
            Packer packer;
            packer.put(mine);
            const std::string said = post_.swap(after(distance), packer.take(), before(distance), wait);
            mine = std::max(mine, Unpacker(said).get<std::uint64_t>());
        }
        return mine;
    }
    [[nodiscard]] std::vector<std::string> all(std::string_view mine) {
        // Texts in the order: this member, the member before it, and so on.
        std::vector<std::string> backwards{std::string(mine)};
        backwards.reserve(size());
        for (Rank distance = 1; distance < size(); distance *= 2) {
            const Rank count = std::min(distance, size() - distance);
            Packer packer;
            for (Rank i = 0; i < count; ++i) packer.put_text(backwards[i]);
            const std::string said = post_.swap(after(distance), packer.take(), before(distance), Post::Wait::patient);
            Unpacker unpacker(said);
            for (Rank i = 0; i < count; ++i) backwards.emplace_back(unpacker.get_text());
        }
        std::vector<std::string> forwards(size());
        for (Rank i = 0; i < size(); ++i) forwards[(mine_ + size() - i) % size()] = std::move(backwards[i]);
        return forwards;
    }
    // Return the texts of all members at member 0, and nothing at other members. Moves less data than all().
    [[nodiscard]] std::vector<std::string> to_first(std::string_view mine) {
        std::vector<std::string> said{std::string(mine)};
        for (Rank step = 1; step < size(); step *= 2) {
            if ((mine_ & step) != 0) {
                Packer packer;
                for (const std::string& each : said) packer.put_text(each);
                send(mine_ - step, packer.take());
                return {};
            }
            if (step >= size() - mine_) continue;
            const std::string bytes = receive(mine_ + step);
            for (Unpacker unpacker(bytes); !unpacker.at_end();) said.emplace_back(unpacker.get_text());
        }
        return said;
    }
    [[nodiscard]] std::string from_first(std::string mine) {
        // A member whose number has the lowest set bit b receives from mine_ - b, and sends to mine_ + s for each power
        // of two s < b.
        const Rank lowest = mine_ == 0 ? std::bit_ceil(size()) : mine_ & (~mine_ + 1);
        if (mine_ != 0) mine = post_.receive(ranks_[mine_ - lowest], Post::Wait::patient);
        for (Rank step = lowest / 2; step > 0; step /= 2)
            if (step < size() - mine_) send(mine_ + step, mine);
        return mine;
    }

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
