// The timed loop of data transfers with several requests in flight. Allocates nothing, locks nothing, prints nothing.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "workload/transfer_loop.hpp"

namespace strakes {

// Latency is the time from the submission of a request to the detection of its completion. Before the loop ends, it
// waits for all requests in flight. If no request failed, the completed transfers are then the first ones in order.
template <class File, class Order>
class QueuedLoop {
  public:
    QueuedLoop(const LoopSetting& loop, File& file, Order order, RankResult& result) noexcept
        : loop_(loop),
          clock_(loop.setting.clock),
          file_(file),
          order_(order),
          result_(result),
          calls_(loop.seat.latencies.calls),
          reads_(loop.seat.latencies.reads ? *loop.seat.latencies.reads : calls_),
          pace_(loop.pace, clock_),
          content_(loop.content) {}

    LoopEnd run() noexcept {
        result_.queue_depth = 0;
        order_.restart(0);
        for (;;) {
            begin_transfers();
            if (file_.under_way() == 0) return end_;
            result_.queue_depth = std::max(result_.queue_depth, file_.under_way());
            if (const int error = file_.ring().submit_and_wait(); error != 0) {
                file_.ring().stop();  // The ring must stop first, because the buffer is freed before the ring.
                return {.in_order = end_.in_order, .failed = true, .call = "io_uring_enter", .error = error};
            }
            take_complete();
            if (pace_.on()) {
                pace_.hold(result_.operations, result_.bytes);
                result_.held_ns = pace_.held_ns();
            }
        }
    }

  private:
    // Stamped data is submitted in batches of this size: a few microseconds, several times the cost of a submission.
    static constexpr std::size_t kStampedTogether = std::size_t{64} * 1024;

    // Start a transfer in every free slot. The transfers share a clock reading and the call that submits them. If data
    // is stamped, some requests are submitted while others are still being stamped.
    void begin_transfers() noexcept {
        auto& free = file_.free_slots();
        std::size_t told = free.size();  // Entries of `free` from this index on are submitted.
        std::size_t left = told;
        std::size_t stamped = 0;
        std::uint64_t before = loop_.stamp ? clock_.now() : 0;
        const auto tell = [&] {
            const std::uint64_t now = clock_.now();
            if (loop_.stamp) result_.data += elapsed(before, now);
            while (told > left) file_.request(free[--told]).begun = now;
        };
        while (left > 0 && may_begin()) {
            if (stamped >= kStampedTogether) {
                tell();
                file_.ring().submit();
                stamped = 0;
                before = clock_.now();
            }
            const std::uint32_t slot = free[--left];
            auto& request = file_.request(slot);
            request.offset = order_.next();
            request.done = 0;
            request.reading = loop_.read_percent == 100 ||
                              (loop_.read_percent != 0 && mix(loop_.choice_key + chosen_++) % 100 < loop_.read_percent);
            if (!request.reading && loop_.stamp) {
                fill(file_.buffer(slot), content_, request.offset);
                stamped += file_.buffer(slot).size();
            }
            file_.push(slot);
            ++begun_;
            if (pass_ == 0) end_.in_order = begun_;
        }
        tell();
        free.resize(left);
    }

    [[nodiscard]] bool may_begin() noexcept {
        if (stopping_ || loop_.setting.halted()) return false;
        if (begun_ < loop_.count) return true;
        if (!loop_.repeat || loop_.count == 0) return false;
        order_.restart(++pass_);
        content_.age += loop_.ages_a_pass;
        begun_ = 0;
        return true;
    }

    void take_complete() noexcept {
        // Requests that complete during this round's verification are found in the next round.
        const std::uint64_t now = clock_.now();
        file_.ring().reap([&](std::uint32_t slot, int moved) noexcept { complete(slot, moved, now); });
        if (loop_.verify) result_.data += elapsed(now, clock_.now());
        loop_.seat.progress.publish(result_.operations, result_.bytes);
        if (now >= loop_.deadline && !stopping_ && (loop_.repeat || begun_ < loop_.count)) {
            result_.out_of_time = true;
            stopping_ = true;
        }
    }

    void complete(std::uint32_t slot, int moved, std::uint64_t now) noexcept {
        auto& request = file_.request(slot);
        const std::span<std::byte> buffer = file_.buffer(slot);
        if (moved > 0) request.done += static_cast<std::size_t>(moved);
        const bool again = moved == -EINTR || moved == -EAGAIN;
        if (again || (moved > 0 && request.done < buffer.size())) {
            file_.push(slot);
            return;
        }
        file_.free_slots().push_back(slot);  // Does not allocate: the capacity was reserved.
        if (moved <= 0)
            return fail(request.reading, moved < 0 ? -moved : LoopEnd::kEndOfFile, request.offset + request.done);
        const std::uint64_t took = elapsed(request.begun, now);
        (request.reading ? reads_ : calls_).record(clock_.to_ns(took));
        if (took > result_.slowest) result_.slowest = took;
        ++result_.operations;
        result_.bytes += buffer.size();
        if (!request.reading || !loop_.verify) return;
        if (const auto mismatch = verify(buffer, loop_.found, request.offset))
            fail(true, 0, request.offset, mismatch);
        else
            result_.verified_bytes += buffer.size();
    }

    // If several requests in flight fail, report the failure with the lowest offset.
    void fail(bool reading, int error, std::uint64_t offset, const std::optional<Mismatch>& mismatch = {}) noexcept {
        stopping_ = true;
        if (std::exchange(end_.failed, true) && offset >= end_.offset) return;
        end_.reading = reading;
        end_.error = error;
        end_.offset = offset;
        end_.mismatch = mismatch;
    }

    const LoopSetting& loop_;
    const Clock clock_;
    File& file_;
    Order order_;
    RankResult& result_;
    Histogram& calls_;
    Histogram& reads_;
    RoundPace pace_;
    Content content_;  // content that this pass writes
    LoopEnd end_;
    std::uint64_t begun_ = 0;   // number of transfers begun in this pass
    std::uint64_t chosen_ = 0;  // number of random choices in all passes
    std::uint64_t pass_ = 0;
    bool stopping_ = false;
};

}  // namespace strakes
