// The timed loop of transfers by collective calls. A rank that has no transfers left, or has failed, takes part with
// zero bytes until all ranks agree to stop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "backend/library_file.hpp"
#include "team/exchange.hpp"
#include "workload/transfer_loop.hpp"

namespace strakes {

// Agreement of all ranks on when to stop. The ranks agree about twenty times a second or every 64 calls, and more often
// shortly before the deadline. Each agreement sets the number of calls until the next agreement.
class GoingOn {
  public:
    GoingOn(const LoopSetting& loop, std::uint64_t start) : loop_(loop), clock_(loop.setting.clock), last_(start) {}

    // Called before each call. Return whether to stop, the same on all ranks. `failed`: this rank has failed.
    [[nodiscard]] bool stop(bool failed) {
        if (left_-- > 0) return false;
        const std::uint64_t now = clock_.now();
        const bool late = between_ > 0 && now >= loop_.deadline;  // One call is always allowed, as in transfer_loop().
        const bool over = failed || loop_.setting.halted();
        // The ranks exchange maxima: the largest kMost - n gives the smallest n.
        const auto agreed =
            most_of_all(*loop_.seat.exchange, loop_.seat.rank, {over ? 1U : 0U, late ? 1U : 0U, kMost - wanted(now)});
        left_ = between_ = kMost - agreed[2];
        last_ = clock_.now();
        --left_;
        out_of_time_ = agreed[1] != 0;
        return agreed[0] != 0 || out_of_time_;
    }
    [[nodiscard]] bool out_of_time() const noexcept { return out_of_time_; }

  private:
    static constexpr std::uint64_t kMost = 64;
    static constexpr std::uint64_t kEveryNs = 50'000'000;

    // Return the number of calls expected in kEveryNs or, if this is shorter, in half of the time to the deadline.
    [[nodiscard]] std::uint64_t wanted(std::uint64_t now) const {
        if (between_ == 0) return 1;
        const std::uint64_t most = std::min(kMost, 2 * between_);  // Later calls may be slower.
        const std::uint64_t took = std::max<std::uint64_t>(1, clock_.to_ns(elapsed(last_, now)) / between_);
        const std::uint64_t left = loop_.deadline == UINT64_MAX ? kEveryNs : clock_.to_ns(elapsed(now, loop_.deadline));
        return std::clamp<std::uint64_t>(std::min(kEveryNs, left / 2) / took, 1, most);
    }

    const LoopSetting& loop_;
    const Clock clock_;
    std::uint64_t last_;         // time of the last agreement
    std::uint64_t between_ = 0;  // number of calls from the last agreement to the next
    std::uint64_t left_ = 0;
    bool out_of_time_ = false;
};

// `calls`: maximum over all ranks of the transfers in a pass.
template <class Order>
LoopEnd collective_loop(const LoopSetting& loop, LibraryFile& file, std::uint64_t calls, Order order,
                        RankResult& result) {
    const Clock clock = loop.setting.clock;
    Histogram& latencies = loop.seat.latencies.calls;
    Pace pace = loop.pace;
    LoopEnd end;
    end.reading = loop.read_percent == 100;
    GoingOn going_on(loop, result.start);
    for (std::uint64_t pass = 0; calls > 0; ++pass) {
        order.restart(pass);
        Content content = loop.content;
        content.age += pass * loop.ages_a_pass;
        for (std::uint64_t i = 0; i < calls; ++i) {
            if (going_on.stop(end.failed)) {
                result.out_of_time = going_on.out_of_time() && (loop.repeat || i < loop.count);
                return end;
            }
            const bool mine = i < loop.count && !end.failed;
            const std::span<std::byte> buffer = loop.buffer.first(mine ? loop.buffer.size() : 0);
            const std::uint64_t offset = mine ? order.next() : 0;
            std::uint64_t before = clock.now();
            if (mine && !end.reading && loop.stamp) {
                fill(buffer, content, offset);
                const std::uint64_t made = clock.now();
                result.data += elapsed(before, made);
                before = made;
            }
            const FileMove move = end.reading ? file.read_at(buffer.data(), buffer.size(), offset)
                                              : file.write_at(buffer.data(), buffer.size(), offset);
            const std::uint64_t now = clock.now();
            const std::uint64_t took = elapsed(before, now);
            if (end.failed) continue;
            if (move.error != 0 || move.bytes < buffer.size()) {
                end.failed = true;
                end.error = move.error != 0 ? move.error : LoopEnd::kEndOfFile;
                end.offset = offset + move.bytes;
                continue;
            }
            if (!mine) continue;
            latencies.record(clock.to_ns(took));
            result.slowest = std::max(result.slowest, took);
            ++result.operations;
            result.bytes += buffer.size();
            if (pass == 0) end.in_order = i + 1;
            loop.seat.progress.publish(result.operations, result.bytes);
            if (end.reading && loop.verify) {
                end.mismatch = verify(buffer, loop.found, offset);
                end.failed = end.mismatch.has_value();
                if (!end.failed) result.verified_bytes += buffer.size();
                result.data += elapsed(now, clock.now());
            }
            if (pace.on())
                static_cast<void>(
                    pace.hold(clock.now(), {.operations = 1, .bytes = buffer.size(), .ticks = took}, result.held_ns));
        }
        if (!loop.repeat) return end;
    }
    return end;
}

}  // namespace strakes
