// Bytes from process to process: all that the rest of the engine asks of MPI. Called by one thread of each process.
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
    // Patient waiting leaves the processor to others, brisk waiting does so for short times only: for steps that come
    // one right after the other while nobody is timed. Eager waiting answers at once.
    enum class Wait : std::uint8_t { patient, brisk, eager };

    Post() = default;
    Post(const Post&) = delete;
    Post& operator=(const Post&) = delete;
    virtual ~Post() = default;

    [[nodiscard]] virtual Rank rank() const = 0;
    [[nodiscard]] virtual Rank size() const = 0;

    virtual void send(Rank to, std::string_view bytes) = 0;
    // Messages of one sender come in the order in which it sent them.
    virtual std::string receive(Rank from, Wait wait) = 0;
    // Both at once, so that processes may do it in a ring.
    virtual std::string swap(Rank to, std::string_view bytes, Rank from, Wait wait) = 0;

    // For the ranks of one plan: `ranks` are those of the circle's members, `nodes` the numbers of their nodes.
    virtual std::unique_ptr<Exchange> exchange(Circle circle, std::vector<Rank> ranks,
                                               std::vector<std::uint32_t> nodes) = 0;
    // For the same ranks.
    virtual std::unique_ptr<LibraryFiles> libraries(std::vector<Rank> ranks) = 0;
};

}  // namespace strakes
