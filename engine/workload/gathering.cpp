// Gathering, apart from the writer's loop: members send pieces, and the writer releases them.
#include "workload/gathering.hpp"

namespace strakes {

namespace {

// Wait for messages without content. Return false if a halt came first.
bool wait_all(Exchange& exchange, std::span<const Exchange::Ticket> tickets, const std::atomic<Halt>& halt) {
    return std::ranges::all_of(tickets,
                               [&](Exchange::Ticket ticket) { return exchange.wait(ticket, halt).has_value(); });
}

}  // namespace

bool send_pieces(const GatherSetting& gather, RankResult& result) {
    Exchange& exchange = *gather.seat.exchange;
    const std::uint32_t writer = gather.group.writer();
    const std::atomic<Halt>& halt = gather.setting.halt;
    const Region& mine = gather.regions[gather.group.place_of(gather.seat.rank)];
    Pieces pieces(gather.phase, {&mine, 1});
    std::array<std::optional<LongMessage>, 2> under_way;
    const auto finish = [&](std::optional<LongMessage>& message) {
        return !message || std::exchange(message, std::nullopt)->wait(exchange, halt).has_value();
    };
    gather.seat.progress.at(kWaiting);
    std::size_t number = 0;
    for (auto piece = pieces.next(); piece; piece = pieces.next(), number = 1 - number) {
        if (!finish(under_way[number]) || gather.setting.halted()) return false;
        if (gather.setting.clock.now() >= gather.deadline) {
            result.out_of_time = true;
            if (!LongMessage::send_nothing(exchange, writer, piece->bytes).wait(exchange, halt)) return false;
            const auto following = piece->followed ? pieces.next() : std::nullopt;
            if (following && !LongMessage::send_nothing(exchange, writer, following->bytes).wait(exchange, halt))
                return false;
            break;
        }
        const std::span<std::byte> bytes = gather.slot(number).first(piece->bytes);
        if (gather.stamps()) fill(bytes, gather.content, piece->offset);
        under_way[number] = LongMessage::send(exchange, writer, bytes);
    }
    return finish(under_way[0]) && finish(under_way[1]);
}

bool wait_for_writer(const GatherSetting& gather) {
    Exchange& exchange = *gather.seat.exchange;
    return exchange.wait(exchange.receive(gather.group.writer(), {}), gather.setting.halt).has_value();
}

void release_members(const GatherSetting& gather) {
    constexpr std::size_t kAtATime = 32;
    Exchange& exchange = *gather.seat.exchange;
    for (std::size_t first = 1; first < gather.group.size(); first += kAtATime) {
        std::array<Exchange::Ticket, kAtATime> tickets;
        const std::size_t count = std::min(kAtATime, gather.group.size() - first);
        for (std::size_t i = 0; i < count; ++i) tickets[i] = exchange.send(gather.group.members[first + i], {});
        if (!wait_all(exchange, std::span(tickets).first(count), gather.setting.halt)) return;
    }
}

}  // namespace strakes
