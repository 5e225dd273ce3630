// Broadcast by messages: in step s the first 2^s of the group send to the next 2^s.
#include "team/exchange.hpp"

#include <array>
#include <bit>

namespace strakes {

bool broadcast(Exchange& exchange, std::span<const Exchange::Rank> group, std::size_t mine, std::span<std::byte> bytes,
               const std::atomic<Halt>& halt) {
    if (mine > 0) {
        const std::size_t source = mine - std::bit_floor(mine);
        if (!exchange.wait(exchange.receive(group[source], bytes), halt)) return false;
    }
    std::array<Exchange::Ticket, 64> tickets;
    std::size_t sent = 0;
    for (std::size_t step = mine == 0 ? 1 : 2 * std::bit_floor(mine); mine + step < group.size(); step *= 2)
        tickets[sent++] = exchange.send(group[mine + step], bytes);
    for (std::size_t i = 0; i < sent; ++i)
        if (!exchange.wait(tickets[i], halt)) return false;
    return true;
}

}  // namespace strakes
