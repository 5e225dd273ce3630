#include "team/exchange.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <span>

namespace strakes {

namespace {

struct Neighbours {
    std::optional<Exchange::Rank> before;
    std::array<Exchange::Rank, 32> after{};
    std::size_t count = 0;

    void tell(Exchange::Rank rank) noexcept { after[count++] = rank; }
};

Neighbours in_a_chain(std::span<const Exchange::Rank> group, std::size_t mine) {
    Neighbours neighbours;
    if (mine > 0) neighbours.before = group[mine - 1];
    if (mine + 1 < group.size()) neighbours.tell(group[mine + 1]);
    return neighbours;
}

// In step s the first 2^s members send to the next 2^s.
Neighbours in_a_tree(std::span<const Exchange::Rank> group, std::size_t mine) {
    Neighbours neighbours;
    if (mine > 0) neighbours.before = group[mine - std::bit_floor(mine)];
    for (std::size_t step = mine == 0 ? 1 : 2 * std::bit_floor(mine); mine + step < group.size(); step *= 2)
        neighbours.tell(group[mine + step]);
    return neighbours;
}

}  // namespace

bool broadcast(Exchange& exchange, std::span<const Exchange::Rank> group, std::size_t mine, std::span<std::byte> bytes,
               const std::atomic<Halt>& halt, std::size_t piece) {
    const std::size_t pieces = std::max<std::size_t>(1, (bytes.size() + piece - 1) / piece);
    const Neighbours neighbours = pieces >= group.size() ? in_a_chain(group, mine) : in_a_tree(group, mine);
    const auto bytes_of = [&](std::size_t number) {
        const std::size_t at = number * piece;
        return bytes.subspan(at, std::min(piece, bytes.size() - at));
    };
    // One piece is received while the previous one is forwarded.
    std::array<Exchange::Ticket, 2> rooms;
    std::array<Exchange::Ticket, 32> told;
    std::size_t under_way = 0;
    const auto finish = [&] {
        for (; under_way > 0; --under_way)
            if (!exchange.wait(told[under_way - 1], halt)) return false;
        return true;
    };
    const auto make_room = [&](std::size_t number) {
        if (neighbours.before && number < pieces)
            rooms[number % 2] = exchange.receive(*neighbours.before, bytes_of(number));
    };
    make_room(0);
    for (std::size_t number = 0; number < pieces; ++number) {
        make_room(number + 1);
        if (neighbours.before && !exchange.wait(rooms[number % 2], halt)) return false;
        if (!finish()) return false;
        for (std::size_t i = 0; i < neighbours.count; ++i)
            told[under_way++] = exchange.send(neighbours.after[i], bytes_of(number));
    }
    return finish();
}

Numbers most_of_all(Exchange& exchange, Exchange::Rank mine, Numbers numbers) {
    // Halts are ignored, because a rank that stopped would leave the other ranks waiting.
    static const std::atomic<Halt> kNever{Halt::none};
    const std::size_t ranks = exchange.nodes().size();
    for (std::size_t distance = 1; distance < ranks; distance *= 2) {
        Numbers heard{};
        const auto from = static_cast<Exchange::Rank>((mine + ranks - distance) % ranks);
        const auto to = static_cast<Exchange::Rank>((mine + distance) % ranks);
        const auto room = exchange.receive(from, std::as_writable_bytes(std::span(heard)));
        const auto told = exchange.send(to, std::as_bytes(std::span(numbers)));
        static_cast<void>(exchange.wait(room, kNever));
        static_cast<void>(exchange.wait(told, kNever));
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = std::max(numbers[i], heard[i]);
    }
    return numbers;
}

}  // namespace strakes
