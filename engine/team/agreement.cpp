// All-reduce by dissemination: in each step a rank sends to the rank at twice the distance. The maximum may count a
// value twice.
#include "team/agreement.hpp"

#include <algorithm>
#include <atomic>
#include <span>

namespace strakes {

Numbers most_of_all(Exchange& exchange, Exchange::Rank mine, Numbers numbers) {
    // A rank that stopped on a halt would leave the others waiting, so the halt is ignored.
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
