// Post: messages between processes, and all that the engine needs of MPI. One thread of each process uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

}  // namespace strakes
