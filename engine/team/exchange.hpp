// Bytes between ranks inside a timed section: messages whose sending and receiving go on while the rank does something
// else, and memory that all ranks of a node share. One object for every rank, used by that rank's thread alone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "team/halt.hpp"

namespace strakes {

class Exchange {
  public:
    using Rank = std::uint32_t;

    // Of one message: MPI counts bytes in an int, and transports have been seen to fail close to its end.
    static constexpr std::size_t kMostBytes = std::size_t{1} << 30U;
    // So many of a rank's messages may be under way at a time, sent and received together.
    static constexpr std::uint32_t kMostTickets = 64;
    struct Ticket {
        std::uint32_t number = 0;
    };

    Exchange() = default;
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    virtual ~Exchange() = default;

    // The number of each rank's node, by rank; ranks of a node have consecutive numbers, and nodes count from 0.
    [[nodiscard]] virtual std::span<const std::uint32_t> nodes() const = 0;

    // Neither waits, allocates nor fails. Messages of one rank to another arrive in the order in which they were sent;
    // the bytes must stay, and stay as they are, until the ticket has been waited for, or until settle().
    virtual Ticket send(Rank to, std::span<const std::byte> bytes) = 0;
    // Room for the next message of `from` that no earlier call makes room for; the message may be shorter, also empty.
    virtual Ticket receive(Rank from, std::span<std::byte> room) = 0;
    // How many bytes the message had, for which the ticket is not good any more; nothing when the halt came first: then
    // only settle() ends it.
    virtual std::optional<std::size_t> wait(Ticket ticket, const std::atomic<Halt>& halt) = 0;

    // For the steps around the timed section; all ranks call these two in the same order, whatever else failed there.
    //
    // Zeros, the same for all ranks of a node, until settle(). A rank that finds them empty knows that there is no
    // memory, and so do all others of its node.
    virtual std::span<std::byte> node_memory(std::size_t bytes) = 0;
    // After the barrier that follows the timed section: nothing is under way any more, and what was is forgotten.
    virtual void settle() = 0;
};

// What may be more than a message holds, as several. Both sides know how many bytes there are, and with them how many
// messages.
class LongMessage {
  public:
    // Two of them, and what else is under way, are at most kMostTickets.
    static constexpr std::size_t kMostMessages = 24;

    [[nodiscard]] static LongMessage send(Exchange& exchange, Exchange::Rank to, std::span<const std::byte> bytes,
                                          std::size_t most = Exchange::kMostBytes);
    [[nodiscard]] static LongMessage receive(Exchange& exchange, Exchange::Rank from, std::span<std::byte> room,
                                             std::size_t most = Exchange::kMostBytes);
    // In place of one of so many bytes: empty messages.
    [[nodiscard]] static LongMessage send_nothing(Exchange& exchange, Exchange::Rank to, std::size_t bytes,
                                                  std::size_t most = Exchange::kMostBytes);
    // As Exchange::wait: how many bytes there were.
    [[nodiscard]] std::optional<std::size_t> wait(Exchange& exchange, const std::atomic<Halt>& halt) const;

  private:
    std::array<Exchange::Ticket, kMostMessages> tickets_;
    std::size_t count_ = 0;
};

// From the first rank of the group to all others, piece by piece, so that a rank passes one on while the next is on its
// way to it: from each to the next where there are many pieces, else along a binomial tree. `mine` is this rank's place
// in the group. False when the halt ended it: the bytes are not there then, and settle() must follow before they go.
inline constexpr std::size_t kBroadcastPiece = std::size_t{1} << 18U;
[[nodiscard]] bool broadcast(Exchange& exchange, std::span<const Exchange::Rank> group, std::size_t mine,
                             std::span<std::byte> bytes, const std::atomic<Halt>& halt,
                             std::size_t piece = kBroadcastPiece);

}  // namespace strakes
