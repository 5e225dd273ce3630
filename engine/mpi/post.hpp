// Implements the post over MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/exchange.hpp"
#include "team/post.hpp"

namespace strakes {

class MpiPost final : public Post {
  public:
    // Connects all processes, with separate communicators for the post and for exchanges. The calling thread must have
    // initialised MPI.
    MpiPost();
    // Collective. Must be called before MPI is finalised.
    void close();

    [[nodiscard]] Rank rank() const override { return rank_; }
    [[nodiscard]] Rank size() const override { return size_; }
    void send(Rank to, std::string_view bytes) override;
    std::string receive(Rank from, Wait wait) override;
    std::string swap(Rank to, std::string_view bytes, Rank from, Wait wait) override;

    std::unique_ptr<Exchange> exchange(Circle circle, std::vector<Rank> ranks,
                                       std::vector<std::uint32_t> nodes) override;
    std::unique_ptr<LibraryFiles> libraries(std::vector<Rank> ranks) override;

    // Sets the longest sleep of a waiting process from the number of ranks per processor of its machine.
    void set_crowding(std::size_t ranks_per_processor) noexcept;

  private:
    std::vector<MPI_Request> begin(Rank to, std::string_view bytes);
    void complete(std::vector<MPI_Request> requests, Wait wait) const;
    [[nodiscard]] Patience patience(Wait wait) const noexcept;

    // Returns the communicator of these ranks. Collective over them. Keeps it for later plans with the same ranks.
    MPI_Comm communicator_of(const std::vector<Rank>& ranks);

    MPI_Comm everybody_ = MPI_COMM_NULL;
    std::map<std::vector<Rank>, MPI_Comm> some_;
    MPI_Comm messages_ = MPI_COMM_NULL;  // for exchanges
    Rank rank_ = 0;
    Rank size_ = 1;
    std::uint64_t longest_nap_ns_;
    bool crowded_ = false;
};

}  // namespace strakes
