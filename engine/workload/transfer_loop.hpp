// The timed loop of data transfers: allocates nothing, locks nothing, prints nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "data/pattern.hpp"
#include "plan/kind.hpp"
#include "plan/transfer_phase.hpp"
#include "team/exchange.hpp"
#include "workload/permutation.hpp"
#include "workload/workload.hpp"

namespace strakes {

// Return the size of call `number`, or `most` if `shares` is empty.
inline std::size_t size_of_call(std::span<const SizeShare> shares, std::uint64_t key, std::uint64_t number,
                                std::size_t most) noexcept {
    if (shares.empty()) return most;
    std::uint64_t drawn = mix(mix(key + 3) + number) % 100;
    for (const SizeShare& share : shares) {
        if (drawn < share.percent) return static_cast<std::size_t>(share.bytes);
        drawn -= share.percent;
    }
    return static_cast<std::size_t>(shares.back().bytes);
}

class WearOut {
  public:
    WearOut(const Seat& seat, const Stop& stop) noexcept
        : exchange_(stop.rule == StopRule::wear_out ? seat.exchange : nullptr), rank_(seat.rank) {}

    [[nodiscard]] bool wanted() const noexcept { return exchange_ != nullptr; }
    // Return the number of operations that every rank must reach, at least `done`. Waits for all ranks. Every rank must
    // call this function in its timed section, even after a failure. Only the first call of a rank counts.
    std::uint64_t agree(std::uint64_t done) {
        if (!wanted() || agreed_) return done;
        agreed_ = true;
        return std::max(done, most_of_all(*exchange_, rank_, {done, 0, 0}).front());
    }

  private:
    Exchange* exchange_;
    std::uint32_t rank_;
    bool agreed_ = false;
};

struct LoopSetting {
    const PhaseSetting& setting;
    const Seat& seat;
    std::span<std::byte> buffer;                         // buffer for one transfer
    Content content;                                     // content that the first pass writes
    Content found;                                       // content that reads accept
    std::uint64_t ages_a_pass;                           // increase of the age from pass to pass
    std::uint64_t count;                                 // number of transfers of one pass
    std::uint32_t read_percent;                          // percentage of reads: 100: only reads, 0: only writes
    std::uint64_t choice_key;                            // seed for the choice of reads, and for sizes
    std::span<const SizeShare> read_sizes, write_sizes;  // sizes of transfers; empty: the whole buffer
    bool stamp, verify, repeat;
    bool synchronise;  // whether to synchronise after each write
    std::uint64_t deadline;
    Pace pace;
    WearOut* wear_out;  // null if the deadline ends the loop
};

struct LoopEnd {
    static constexpr int kEndOfFile = -1;

    std::uint64_t in_order = 0;  // number of completed transfers of the first pass
    bool failed = false;
    bool reading = false;        // whether the failed call was a read
    const char* call = nullptr;  // name of the failed call, if neither a read nor a write
    int error = 0;               // error number or kEndOfFile
    std::uint64_t offset = 0;    // file offset of the failure
    std::optional<Mismatch> mismatch;
};

Failure describe(const LoopEnd& end, std::string path);

// Move the whole buffer, continuing after short transfers. Return 0, an error number or kEndOfFile; `offset` is then
// the position of the failure. Inlined, so that no function returns after the system call (backend/raw.hpp).
template <class File>
[[gnu::always_inline]] inline int move_all(bool reading, File& file, std::span<std::byte> buffer,
                                           std::uint64_t& offset) noexcept {
    for (;;) {
        const auto [bytes, error] = reading ? file.read_at(buffer.data(), buffer.size(), offset)
                                            : file.write_at(buffer.data(), buffer.size(), offset);
        if (bytes == buffer.size()) return 0;
        if (error != 0) return error;
        if (bytes == 0) return LoopEnd::kEndOfFile;
        buffer = buffer.subspan(bytes);
        offset += bytes;
    }
}

template <class Io>
[[gnu::always_inline]] inline int move_all(bool reading, int descriptor, std::span<std::byte> buffer,
                                           std::uint64_t& offset) noexcept {
    struct Bound {
        int descriptor;
        [[gnu::always_inline]] auto read_at(std::byte* to, std::size_t bytes, std::uint64_t at) const noexcept {
            return Io::read_at(descriptor, to, bytes, at);
        }
        [[gnu::always_inline]] auto write_at(const std::byte* from, std::size_t bytes,
                                             std::uint64_t at) const noexcept {
            return Io::write_at(descriptor, from, bytes, at);
        }
    } bound{descriptor};
    return move_all(reading, bound, buffer, offset);
}

// Reads the clock once per call, and once more to stamp or verify data. The time for stamping and verifying is part of
// the phase and reported as result.data, but is not part of a call's latency.
template <class File, class Order>
LoopEnd transfer_loop(const LoopSetting& loop, File& file, Order order, RankResult& result) {
    const Clock clock = loop.setting.clock;
    Progress& progress = loop.seat.progress;
    Histogram& calls = loop.seat.latencies.calls;
    Histogram& reads = loop.seat.latencies.reads ? *loop.seat.latencies.reads : calls;
    Pace pace = loop.pace;
    LoopEnd end;
    std::uint64_t before = clock.now();
    std::uint64_t chosen = 0;  // number of random choices in all passes
    std::uint64_t count = loop.count, deadline = loop.deadline;
    for (std::uint64_t pass = 0; loop.count > 0; ++pass) {
        order.restart(pass);
        Content content = loop.content;
        content.age += pass * loop.ages_a_pass;
        for (std::uint64_t i = 0; i < count; ++i) {
            if (loop.setting.halted()) return end;
            end.offset = order.next();
            const std::uint64_t offset = end.offset;
            end.reading = loop.read_percent == 100 ||
                          (loop.read_percent != 0 && mix(loop.choice_key + chosen++) % 100 < loop.read_percent);
            const std::span<std::byte> piece = loop.buffer.first(size_of_call(
                end.reading ? loop.read_sizes : loop.write_sizes, loop.choice_key, chosen, loop.buffer.size()));
            if (!end.reading && loop.stamp) {
                fill(piece, content, offset);
                const std::uint64_t made = clock.now();
                result.data += elapsed(before, made);
                before = made;
            }
            end.error = move_all(end.reading, file, piece, end.offset);
            if (loop.synchronise && !end.reading && end.error == 0) {
                const FileStep step = file.synchronise();
                if (step.error != 0) end.call = step.call;
                end.error = step.error;
            }
            std::uint64_t now = clock.now();
            if (end.error != 0) {
                end.failed = true;
                return end;
            }
            const std::uint64_t took = elapsed(before, now);
            (end.reading ? reads : calls).record(clock.to_ns(took));
            if (took > result.slowest) result.slowest = took;
            ++result.operations;
            result.bytes += piece.size();
            if (pass == 0) end.in_order = i + 1;
            progress.publish(result.operations, result.bytes);
            before = now;
            if (end.reading && loop.verify) {
                end.mismatch = verify(piece, loop.found, offset);
                if (end.mismatch) {
                    end.failed = true;
                    return end;
                }
                result.verified_bytes += piece.size();
                before = clock.now();
                result.data += elapsed(now, before);
            }
            if (pace.on())
                now = before =
                    pace.hold(before, {.operations = 1, .bytes = piece.size(), .ticks = took}, result.held_ns);
            if (now >= deadline && (loop.repeat || i + 1 < count)) {
                result.out_of_time = true;
                if (loop.wear_out == nullptr) return end;
                deadline = UINT64_MAX;
                count = std::min(count, loop.wear_out->agree(i + 1));
                before = clock.now();
            }
        }
        if (!loop.repeat) return end;
    }
    return end;
}

}  // namespace strakes
