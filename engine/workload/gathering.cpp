// What the members do that do not write.
#include "workload/gathering.hpp"

namespace strakes {

namespace {

// Empty messages, so many under way at a time.
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
    std::array<std::optional<Exchange::Ticket>, 2> under_way;
    const auto finish = [&](std::optional<Exchange::Ticket>& ticket) {
        return !ticket || exchange.wait(*std::exchange(ticket, std::nullopt), halt).has_value();
    };
    gather.seat.progress.at(kWaiting);
    std::size_t number = 0;
    for (auto piece = pieces.next(); piece; piece = pieces.next(), number = 1 - number) {
        if (!finish(under_way[number]) || gather.setting.halted()) return false;
        if (gather.setting.clock.now() >= gather.deadline) {
            result.out_of_time = true;
            const std::array ends{exchange.send(writer, {}),
                                  piece->followed ? exchange.send(writer, {}) : Exchange::Ticket{}};
            if (!wait_all(exchange, std::span(ends).first(piece->followed ? 2 : 1), halt)) return false;
            break;
        }
        const std::span<std::byte> bytes = gather.slot(number).first(piece->bytes);
        if (gather.stamps()) fill(bytes, gather.content, piece->offset);
        under_way[number] = exchange.send(writer, bytes);
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
