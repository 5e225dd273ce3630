#include "workload/gathering.hpp"

#include <algorithm>
#include <map>

namespace strakes {

namespace {

using Ranks = std::vector<std::uint32_t>;

// Return the part that contains position `place`, if `count` positions are divided into `groups` nearly equal parts.
std::size_t part_of(std::size_t place, std::size_t count, std::size_t groups) {
    std::size_t part = place * groups / count;
    while ((part + 1) * count / groups <= place) ++part;
    return part;
}

}  // namespace

std::uint32_t Group::place_of(std::uint32_t rank) const noexcept {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(members, rank) - members.begin());
}

Group group_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t rank) {
    std::map<std::uint32_t, Ranks> pools;
    for (std::uint32_t other = 0; other < nodes.size(); ++other)
        pools[phase.grouping == Grouping::node ? nodes[other] : 0].push_back(other);
    const std::uint32_t mine = phase.grouping == Grouping::node ? nodes[rank] : 0;
    Group group;
    for (const auto& [node, ranks] : pools) {
        const std::size_t groups = std::min<std::size_t>(phase.writers, ranks.size());
        group.groups += static_cast<std::uint32_t>(groups);
        if (node != mine) {
            if (node < mine) group.number += static_cast<std::uint32_t>(groups);
            continue;
        }
        const auto place = static_cast<std::size_t>(std::ranges::lower_bound(ranks, rank) - ranks.begin());
        const std::size_t part = part_of(place, ranks.size(), groups);
        const auto at = [&members = ranks, groups](std::size_t border) {
            return members.begin() + static_cast<std::ptrdiff_t>(border * members.size() / groups);
        };
        group.number += static_cast<std::uint32_t>(part);
        group.members.assign(at(part), at(part + 1));
    }
    return group;
}

std::uint32_t file_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t owner) {
    return phase.layout == Layout::file_per_writer ? group_of(phase, nodes, owner).number : owner;
}

namespace {

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
    const auto send_nothing = [&] { return exchange.wait(exchange.send(writer, {}), halt).has_value(); };
    gather.seat.progress.at(kWaiting);
    std::size_t number = 0;
    for (auto piece = pieces.next(); piece; piece = pieces.next(), number = 1 - number) {
        if (!finish(under_way[number]) || gather.setting.halted()) return false;
        if (gather.setting.clock.now() >= gather.deadline) {
            result.out_of_time = true;
            if (!send_nothing() || (piece->followed && !send_nothing())) return false;
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
