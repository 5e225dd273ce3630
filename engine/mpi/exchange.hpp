// Messages between the ranks of a plan over MPI, and memory that the processes of a node share.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "system/descriptor.hpp"
#include "team/circle.hpp"
#include "team/exchange.hpp"

namespace strakes {

class MpiExchange final : public Exchange {
  public:
    // `ranks` and `nodes`, by member of the circle: rank in the communicator and number of the node. `longest_nap_ns`
    // is the longest sleep of a waiting rank, 0 if every rank has a processor.
    MpiExchange(MPI_Comm messages, Circle circle, std::vector<Rank> ranks, std::vector<std::uint32_t> nodes,
                std::uint64_t longest_nap_ns);
    ~MpiExchange() override { give_back(); }

    [[nodiscard]] std::span<const std::uint32_t> nodes() const override { return nodes_; }
    Ticket send(Rank to, std::span<const std::byte> bytes) override;
    Ticket receive(Rank from, std::span<std::byte> room) override;
    std::optional<std::size_t> wait(Ticket ticket, const std::atomic<Halt>& halt) override;
    std::span<std::byte> node_memory(std::size_t bytes) override;
    void settle() override;

  private:
    struct Message {
        MPI_Request request = MPI_REQUEST_NULL;
        Rank other = 0;
        bool receives = false;
        bool in_use = false;
        std::size_t size = 0;
    };

    [[nodiscard]] Ticket new_ticket() noexcept;
    [[nodiscard]] bool is_done(Message& message);
    void finish(Message& message);
    void withdraw(Message& message);
    void take_rest(Rank from, std::uint64_t messages);
    [[nodiscard]] bool map(int descriptor, std::size_t bytes);
    void give_back() noexcept;

    MPI_Comm messages_;
    std::uint64_t longest_nap_ns_;
    Circle circle_;
    std::vector<Rank> ranks_;
    std::vector<std::uint32_t> nodes_;
    std::array<Message, kMostTickets> under_way_{};
    std::vector<std::uint64_t> sent_, received_;  // since the last settle(), by the other rank
    std::span<std::byte> memory_;
};

}  // namespace strakes
