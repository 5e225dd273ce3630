// The timed loop of item operations with several in flight. Allocates nothing, locks nothing, prints nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend/ring.hpp"
#include "backend/uring_item.hpp"
#include "workload/item_portion.hpp"
#include "workload/workload.hpp"

namespace strakes {

// Operands of a rank's requests, allocated outside the timed section.
class ItemSlots {
  public:
    struct Slot {
        UringItem item;
        ItemName name{false, 0, 1}, other{false, 0, 1};
        ItemBelow below{name};  // if its directory is not open
        std::uint32_t owner = 0, leaf = 0;
        std::uint64_t number = 0;  // in the order of starts
        std::uint64_t begun = 0;   // ticks
    };

    // Return 0 or an error number.
    int prepare(std::uint32_t depth) {
        if (const int error = ring.start(depth); error != 0) return error;
        slots.assign(depth, {});
        free.resize(depth);
        for (std::uint32_t slot = 0; slot < depth; ++slot) free[slot] = depth - 1 - slot;
        return 0;
    }
    [[nodiscard]] std::uint32_t under_way() const noexcept {
        return static_cast<std::uint32_t>(slots.size() - free.size());
    }

    std::vector<Slot> slots;
    std::vector<std::uint32_t> free;
    Ring ring;  // destroyed before the operands of its requests
};

// The first item in order whose operation failed.
struct ItemFault {
    std::uint64_t number;
    std::uint32_t owner, leaf;
    ItemName name;
    const char* call;
    int error;
};

struct ItemWork {
    MetadataOperation operation;
    std::uint64_t file_bytes;     // moved with each item
    std::span<std::byte> buffer;  // every slot has its own part
    Stream stream;                // initial content of each part
    std::uint64_t items;          // in one pass
    std::uint64_t deadline;
    bool repeat;
    Pace pace;
};

// Latency is the time from the submission of an operation's first request to the completion of its last one. Before the
// loop ends, it waits for all operations in flight. Without an error, the completed items are then the first ones in
// order.
template <class Cursor>
class QueuedItems {
  public:
    QueuedItems(const PhaseSetting& setting, const Seat& seat, const ItemWork& work, Cursor cursor, ItemSlots& slots,
                RankResult& result) noexcept
        : setting_(setting),
          clock_(setting.clock),
          seat_(seat),
          work_(work),
          cursor_(cursor),
          slots_(slots),
          result_(result),
          part_bytes_(work.buffer.size() / slots.slots.size()),
          pace_(work.pace, clock_) {}

    std::optional<ItemFault> run() noexcept {
        result_.queue_depth = 0;
        for (;;) {
            begin_items();
            if (slots_.under_way() == 0) return fault_;
            result_.queue_depth = std::max(result_.queue_depth, slots_.under_way());
            if (const int error = slots_.ring.submit_and_wait(); error != 0) {
                slots_.ring.stop();  // the buffer is freed before the ring
                const ItemSlots::Slot& any = slots_.slots.front();
                return ItemFault{any.number, any.owner, any.leaf, any.name, "io_uring_enter", error};
            }
            take_complete();
            if (pace_.on()) {
                pace_.hold(result_.operations, result_.bytes);
                result_.held_ns = pace_.held_ns();
            }
        }
    }

  private:
    // Start an operation in every free slot. They are submitted together, so they share a clock reading.
    void begin_items() noexcept {
        auto& free = slots_.free;
        const std::size_t first = free.size();
        std::size_t left = first;
        while (left > 0 && may_begin()) begin(free[--left]);
        const std::uint64_t now = clock_.now();
        for (std::size_t i = left; i < first; ++i) slots_.slots[free[i]].begun = now;
        free.resize(left);
    }

    void begin(std::uint32_t index) noexcept {
        cursor_.next();
        ItemSlots::Slot& slot = slots_.slots[index];
        slot.name = *cursor_.name;
        slot.name.set(cursor_.index, cursor_.renamed);
        slot.other = slot.name.toggled();
        slot.owner = cursor_.owner;
        slot.leaf = cursor_.leaf;
        slot.number = number_++;
        const char* path = slot.name.c_str();
        if (!cursor_.below.empty()) {
            slot.below = ItemBelow(slot.name);
            slot.below.enter(cursor_.below);
            slot.below.set(cursor_.index, cursor_.renamed);
            path = slot.below.c_str();
        }
        slot.item.begin(work_.operation, cursor_.directory, path, slot.other.c_str(),
                        {.buffer = work_.buffer.subspan(index * part_bytes_, part_bytes_),
                         .bytes = work_.file_bytes,
                         .stream = work_.stream,
                         .number = slot.number});
        slot.item.push(slots_.ring, index);
        ++begun_;
    }

    [[nodiscard]] bool may_begin() noexcept {
        if (stopping_ || setting_.halted()) return false;
        if (begun_ < work_.items) return true;
        if (!work_.repeat || work_.items == 0) return false;
        cursor_.restart();
        begun_ = 0;
        return true;
    }

    void take_complete() noexcept {
        const std::uint64_t now = clock_.now();
        slots_.ring.reap([&](std::uint32_t index, int result) noexcept { complete(index, result, now); });
        seat_.progress.publish(result_.operations, result_.bytes);
        if (now >= work_.deadline && !stopping_ && (work_.repeat || begun_ < work_.items)) {
            result_.out_of_time = true;
            stopping_ = true;
        }
    }

    void complete(std::uint32_t index, int result, std::uint64_t now) noexcept {
        ItemSlots::Slot& slot = slots_.slots[index];
        if (!slot.item.take(result)) return slot.item.push(slots_.ring, index);
        slots_.free.push_back(index);  // within the capacity reserved
        if (slot.item.error() != 0) {
            stopping_ = true;
            if (!fault_ || slot.number < fault_->number)
                fault_.emplace(
                    ItemFault{slot.number, slot.owner, slot.leaf, slot.name, slot.item.call(), slot.item.error()});
            return;
        }
        const std::uint64_t took = elapsed(slot.begun, now);
        seat_.latencies.calls.record(clock_.to_ns(took));
        if (took > result_.slowest) result_.slowest = took;
        ++result_.operations;
        result_.bytes += work_.file_bytes;
    }

    const PhaseSetting& setting_;
    const Clock clock_;
    const Seat& seat_;
    const ItemWork& work_;
    Cursor cursor_;
    ItemSlots& slots_;
    RankResult& result_;
    std::size_t part_bytes_;
    RoundPace pace_;
    std::optional<ItemFault> fault_;
    std::uint64_t begun_ = 0;   // in this pass
    std::uint64_t number_ = 0;  // in all passes
    bool stopping_ = false;
};

}  // namespace strakes
