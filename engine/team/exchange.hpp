// Exchange: non-blocking messages between ranks inside a timed section, and memory shared by the ranks of a node. Each
// rank has one object, which only its own thread uses.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace strakes {

enum class Halt : std::uint8_t { none, cancel, error };

// How a rank entered the timed section.
struct Start {
    bool begun = false;
    std::uint64_t clock_uncertainty_ns = 0;  // uncertainty of the rank's timeline at that moment
    bool crowded = false;                    // whether ranks share processors on the rank's machine

    void merge(const Start& other) noexcept {
        begun |= other.begun;
        clock_uncertainty_ns = std::max(clock_uncertainty_ns, other.clock_uncertainty_ns);
        crowded |= other.crowded;
    }
};

class Exchange {
  public:
    using Rank = std::uint32_t;

    // Maximum size of a message. MPI counts bytes in an int, and some transports fail close to INT_MAX.
    static constexpr std::size_t kMostBytes = std::size_t{1} << 30U;
    // Maximum number of messages in flight for one rank, sent and received together.
    static constexpr std::uint32_t kMostTickets = 64;
    struct Ticket {
        std::uint32_t number = 0;
    };

    Exchange() = default;
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    virtual ~Exchange() = default;

    // Node number of each rank. Nodes are numbered from 0, and the ranks of a node are consecutive.
    [[nodiscard]] virtual std::span<const std::uint32_t> nodes() const = 0;

    // Start sending. Does not block, allocate or fail. Messages from one rank to another arrive in the order of
    // sending. The bytes must not change until wait() or settle().
    virtual Ticket send(Rank to, std::span<const std::byte> bytes) = 0;
    // Start receiving the next message of `from` that has no buffer yet. The message may be shorter than `room`, or
    // empty.
    virtual Ticket receive(Rank from, std::span<std::byte> room) = 0;
    // Wait for the message, release the ticket, and return the message's size in bytes. After a halt, return nullopt;
    // only settle() then releases the ticket.
    virtual std::optional<std::size_t> wait(Ticket ticket, const std::atomic<Halt>& halt) = 0;

    // node_memory() and settle() are for the steps around the timed section. All ranks must call them in the same
    // order, even after an error.
    //
    // Return zeroed memory that all ranks of the node share until settle(). If the memory cannot be allocated, all
    // ranks of the node get an empty span.
    virtual std::span<std::byte> node_memory(std::size_t bytes) = 0;
    // Discard all messages in flight and the shared memory. Called after the barrier that follows the timed section.
    virtual void settle() = 0;
};

// Send `bytes` from the first rank of the group to all others in pieces, so that a rank forwards one piece while it
// receives the next. Uses a chain if there are at least as many pieces as ranks, otherwise a binomial tree. `mine` is
// the index of this rank in the group. Return false after a halt: `bytes` is then incomplete, and must stay allocated
// until settle().
inline constexpr std::size_t kBroadcastPiece = std::size_t{1} << 18U;
[[nodiscard]] bool broadcast(Exchange& exchange, std::span<const Exchange::Rank> group, std::size_t mine,
                             std::span<std::byte> bytes, const std::atomic<Halt>& halt,
                             std::size_t piece = kBroadcastPiece);

using Numbers = std::array<std::uint64_t, 3>;

// Return the maximum of each number over all ranks. Every rank must call this function, even after an error. Takes
// ceil(log2(ranks)) steps.
Numbers most_of_all(Exchange& exchange, Exchange::Rank mine, Numbers numbers);

}  // namespace strakes
