// Gathering of a group's data at its writer. Members send their data piece by piece in file order. The next piece
// arrives while the current piece is written.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "team/exchange.hpp"
#include "workload/order.hpp"
#include "workload/transfer_loop.hpp"

namespace strakes {

struct Group {
    std::uint32_t number = 0;  // number among all groups; with file-per-writer also the number of the file
    std::uint32_t groups = 0;
    std::vector<std::uint32_t> members;  // ranks of the group, ascending; the first is the writer

    [[nodiscard]] std::uint32_t writer() const noexcept { return members.front(); }
    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(members.size()); }
    [[nodiscard]] std::uint32_t place_of(std::uint32_t rank) const noexcept;
};

// Return the group of `rank`. `nodes` has the node of each rank. Every node (grouping node), or the whole team
// (grouping global), has `writers` groups of nearly equal size, but no more groups than ranks.
Group group_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t rank);

std::uint32_t file_of(const TransferPhase& phase, std::span<const std::uint32_t> nodes, std::uint32_t owner);

// Return the size of a piece: whole transfers, about 1 MiB together. A member has two pieces in flight.
[[nodiscard]] inline std::uint64_t piece_bytes_of(const TransferPhase& phase) noexcept {
    constexpr std::uint64_t kAbout = std::uint64_t{1} << 20U;
    const std::uint64_t run = phase.access == Access::strided ? phase.block_bytes : phase.bytes_per_rank();
    return std::min(run, std::max<std::uint64_t>(1, kAbout / phase.transfer_bytes) * phase.transfer_bytes);
}

[[nodiscard]] inline std::uint64_t buffer_bytes_of(const TransferPhase& phase) noexcept {
    return phase.gathers() ? 2 * piece_bytes_of(phase) : phase.transfer_bytes * phase.queue_depth;
}

struct Piece {
    std::uint32_t place = 0;  // place of the owner in the group
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool followed = false;  // whether another piece of the same run follows
};

// Iterates over the pieces of some members of a group in file order.
class Pieces {
  public:
    Pieces(const TransferPhase& phase, std::span<const Region> regions)
        : regions_(regions), piece_bytes_(piece_bytes_of(phase)), stopped_(regions.size()) {
        const Region& any = regions.front();
        runs_ = any.transfers * any.transfer_bytes / any.run_bytes;
    }

    void stop(std::uint32_t place) noexcept { stopped_[place] = true; }
    [[nodiscard]] bool stopped(std::uint32_t place) const noexcept { return stopped_[place]; }

    [[nodiscard]] std::optional<Piece> next() noexcept {
        while (run_ < runs_) {
            const Region& region = regions_[place_];
            if (at_ < region.run_bytes && !stopped_[place_]) {
                const std::uint64_t bytes = std::min(piece_bytes_, region.run_bytes - at_);
                const Piece piece{.place = place_,
                                  .offset = region.base + run_ * region.stride + at_,
                                  .bytes = bytes,
                                  .followed = at_ + bytes < region.run_bytes};
                at_ += bytes;
                return piece;
            }
            at_ = 0;
            if (++place_ < regions_.size()) continue;
            place_ = 0;
            ++run_;
        }
        return std::nullopt;
    }

  private:
    std::span<const Region> regions_;
    std::uint64_t piece_bytes_;
    std::uint64_t runs_ = 0;
    std::vector<bool> stopped_;
    std::uint64_t run_ = 0, at_ = 0;
    std::uint32_t place_ = 0;
};

struct GatherSetting {
    const PhaseSetting& setting;
    const Seat& seat;
    const TransferPhase& phase;
    const Group& group;
    std::span<const Region> regions;  // regions of the members
    std::span<std::byte> buffer;      // room for two pieces
    Content content;
    std::uint64_t deadline;

    [[nodiscard]] std::span<std::byte> slot(std::size_t number) const noexcept {
        return buffer.subspan(number * buffer.size() / 2, buffer.size() / 2);
    }
    [[nodiscard]] bool stamps() const noexcept { return phase.pattern == Pattern::stamped; }
};

// Called by the members other than the writer. Return false if a halt came first. A member that is out of time sends an
// empty message, and a second empty message if the writer already expects the member's next piece.
bool send_pieces(const GatherSetting& gather, RankResult& result);
// Members wait until the writer has closed the file and then released them.
bool wait_for_writer(const GatherSetting& gather);
void release_members(const GatherSetting& gather);

// Called by the writer. `done` counts the transfers of each member. Pieces that arrive after the deadline are
// discarded.
template <class File>
LoopEnd write_pieces(const GatherSetting& gather, File& file, std::span<std::uint64_t> done, RankResult& result) {
    struct Slot {
        std::optional<Piece> piece;
        std::optional<Exchange::Ticket> message;
    };
    const Clock clock = gather.setting.clock;
    const std::uint32_t mine = gather.group.place_of(gather.seat.rank);
    Exchange& exchange = *gather.seat.exchange;
    Histogram& waits = *gather.seat.latencies.waits;
    Pieces pieces(gather.phase, gather.regions);
    std::array<Slot, 2> slots;
    Pace pace = gather.setting.pace(result.start, gather.group.groups);
    const auto make_room = [&](std::size_t number) {
        const Piece piece = slots[number].piece.value_or(Piece{});
        slots[number].message =
            exchange.receive(gather.group.members[piece.place], gather.slot(number).first(piece.bytes));
    };
    LoopEnd end;
    slots[0].piece = pieces.next();
    for (std::size_t number = 0; slots[number].piece; number = 1 - number) {
        const Piece piece = slots[number].piece.value_or(Piece{});
        Slot& next = slots[1 - number];
        next = {.piece = pieces.next(), .message = std::nullopt};
        if (gather.setting.halted()) return end;
        if (pieces.stopped(piece.place)) {
            if (const auto& message = slots[number].message; message && !exchange.wait(*message, gather.setting.halt))
                return end;
            continue;
        }
        if (piece.place != mine && !slots[number].message) make_room(number);
        // Receive nothing for the next run of the same member: a member that stops now sends nothing for that run.
        if (next.piece && next.piece->place != mine && (next.piece->place != piece.place || piece.followed))
            make_room(1 - number);
        const std::span<std::byte> bytes = gather.slot(number).first(piece.bytes);
        if (piece.place != mine) {
            const std::uint64_t before = clock.now();
            gather.seat.progress.at(kWaiting);
            const auto size = exchange.wait(slots[number].message.value_or(Exchange::Ticket{}), gather.setting.halt);
            if (!size) return end;
            gather.seat.progress.at("transferring");
            waits.record(clock.to_ns(elapsed(before, clock.now())));
            if (*size == 0) {
                pieces.stop(piece.place);
                result.out_of_time = true;
                continue;
            }
        } else if (result.out_of_time) {
            pieces.stop(mine);
            continue;
        } else if (gather.stamps()) {
            fill(bytes, gather.content, piece.offset);
        }
        for (std::uint64_t at = 0; at < piece.bytes && !result.out_of_time; at += gather.phase.transfer_bytes) {
            end.offset = piece.offset + at;
            const std::uint64_t before = clock.now();
            end.error = move_all(false, file, bytes.subspan(at, gather.phase.transfer_bytes), end.offset);
            std::uint64_t now = clock.now();
            if (end.error != 0) {
                end.failed = true;
                return end;
            }
            const std::uint64_t took = elapsed(before, now);
            gather.seat.latencies.calls.record(clock.to_ns(took));
            result.slowest = std::max(result.slowest, took);
            ++result.operations;
            result.bytes += gather.phase.transfer_bytes;
            ++done[piece.place];
            gather.seat.progress.publish(result.operations, result.bytes);
            if (pace.on())
                now = pace.hold(now, {.operations = 1, .bytes = gather.phase.transfer_bytes, .ticks = took},
                                result.held_ns);
            result.out_of_time = now >= gather.deadline;
        }
    }
    return end;
}

}  // namespace strakes
