// Calls on one small file in the timed loop: relative to the descriptor of its directory, in units.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/pattern.hpp"
#include "plan/plan.hpp"
#include "system/descriptor.hpp"
#include "workload/items.hpp"
#include "workload/permutation.hpp"
#include "workload/plan_state.hpp"
#include "workload/transfer_loop.hpp"

namespace strakes {

// Map 32 or 64 random bits to 0 .. range-1 by multiplication (Lemire, Fast Random Integer Generation in an Interval,
// 2019, without the rejection step). The relative bias is at most range / 2^32 or range / 2^64.
constexpr std::uint64_t scaled32(std::uint64_t bits, std::uint64_t range) noexcept { return (bits * range) >> 32U; }
constexpr std::uint64_t scaled(std::uint64_t bits, std::uint64_t range) noexcept {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(bits) * range) >> 64U);
}

class PoolRule {
  public:
    PoolRule(const SmallFilesPhase& phase, const Plan& plan, std::uint32_t number, std::uint32_t owner) noexcept
        : low_(phase.size_low_bytes),
          range_(phase.size_high_bytes - phase.size_low_bytes + 1),
          directories_(phase.subdirectories == 0 ? 1 : phase.subdirectories),
          seed_(plan.seed),
          salt_(plan.salt),
          key_(mix(mix(mix(mix(plan.seed) + 1) + number) + owner)) {}

    [[nodiscard]] std::uint64_t size_of(std::uint64_t item) const noexcept {
        return low_ + scaled32(mix(key_ + item) & UINT32_MAX, range_);
    }
    [[nodiscard]] std::uint32_t directory_of(std::uint64_t item) const noexcept {
        return static_cast<std::uint32_t>(scaled32(mix(key_ + item) >> 32U, directories_));
    }
    [[nodiscard]] Stream stream_of(std::uint64_t item) const noexcept {
        return strakes::stream_of(seed_, salt_, mix(key_ + item));
    }
    [[nodiscard]] std::uint64_t key_of_phase(std::size_t index) const noexcept { return mix(key_ ^ mix(index + 1)); }

  private:
    std::uint64_t low_, range_, directories_;
    std::uint32_t seed_;
    std::uint64_t salt_;
    std::uint64_t key_;
};

struct PoolFault {
    const char* call = nullptr;
    LoopEnd end;  // Only `error` is set, except after reads and writes.

    [[nodiscard]] explicit operator bool() const noexcept { return call != nullptr; }
};

template <class Io>
class PoolCalls {
  public:
    PoolCalls(const PoolRule& rule, const std::vector<Descriptor>& directories, std::span<std::byte> buffer,
              const ItemName& name, bool verify) noexcept
        : rule_(rule), directories_(directories), buffer_(buffer), name_(name), verify_(verify) {}

    PoolFault open(std::uint64_t item, int flags) noexcept {
        const int parent = directory(item);
        const auto [descriptor, error] = Io::open(parent, name_.c_str(), flags | O_NOFOLLOW);
        if (error != 0) return fault("open", error);
        descriptor_ = descriptor;
        return {};
    }
    PoolFault close() noexcept {
        const int error = Io::close(std::exchange(descriptor_, -1));
        return error == 0 ? PoolFault{} : fault("close", error);
    }
    PoolFault synchronise() noexcept {
        const int error = Io::synchronise(descriptor_);
        return error == 0 ? PoolFault{} : fault("fsync", error);
    }
    PoolFault status(std::uint64_t item) noexcept {
        const int parent = directory(item);
        const int error = Io::status(parent, name_.c_str());
        return error == 0 ? PoolFault{} : fault("stat", error);
    }
    PoolFault remove(std::uint64_t item) noexcept {
        const int parent = directory(item);
        const int error = Io::remove_file(parent, name_.c_str());
        return error == 0 ? PoolFault{} : fault("unlink", error);
    }

    PoolFault write(std::uint64_t item, std::uint64_t from, std::uint64_t to, std::uint64_t unit) noexcept {
        const Stream stream = rule_.stream_of(item);
        return move(false, from, to, unit, stream);
    }
    PoolFault read(std::uint64_t item, std::uint64_t from, std::uint64_t to, std::uint64_t unit) noexcept {
        return move(true, from, to, unit, verify_ ? rule_.stream_of(item) : Stream{});
    }

    // Whole operations on a file that is not open. After a failure no file is left open.
    PoolFault create_whole(std::uint64_t item, std::uint64_t bytes, std::uint64_t unit) noexcept {
        if (PoolFault failed = open(item, O_CREAT | O_EXCL | O_WRONLY)) return failed;
        return closed(write(item, 0, bytes, unit));
    }
    PoolFault append_whole(const PoolFile& file, std::uint64_t bytes, std::uint64_t unit) noexcept {
        if (PoolFault failed = open(file.item, O_WRONLY | O_APPEND)) return failed;
        return closed(write(file.item, file.size_bytes, file.size_bytes + bytes, unit));
    }
    PoolFault read_whole(const PoolFile& file, std::uint64_t unit) noexcept {
        if (PoolFault failed = open(file.item, O_RDONLY)) return failed;
        return closed(read(file.item, 0, file.size_bytes, unit));
    }
    // Close the file that an interrupted loop has left open.
    void leave() noexcept {
        if (descriptor_ >= 0) static_cast<void>(Io::close(std::exchange(descriptor_, -1)));
    }

    [[nodiscard]] std::uint64_t verified_bytes() const noexcept { return verified_bytes_; }
    [[nodiscard]] std::uint64_t item() const noexcept { return item_; }
    [[nodiscard]] const char* name() const noexcept { return name_.c_str(); }

  private:
    int directory(std::uint64_t item) noexcept {
        item_ = item;
        name_.set(item, false);
        return directories_[rule_.directory_of(item)].get();
    }
    static PoolFault fault(const char* call, int error) noexcept {
        PoolFault failed{.call = call, .end = {}};
        failed.end.failed = true;
        failed.end.error = error;
        return failed;
    }
    PoolFault closed(PoolFault failed) noexcept {
        PoolFault of_close = close();
        return failed ? failed : of_close;
    }

    PoolFault move(bool reading, std::uint64_t from, std::uint64_t to, std::uint64_t unit, Stream stream) noexcept {
        while (from < to) {
            const auto piece = buffer_.first(std::min({unit, to - from, std::uint64_t{buffer_.size()}}));
            if (!reading) fill(piece, stream, from);
            std::uint64_t offset = from;
            if (const int error = move_all<Io>(reading, descriptor_, piece, offset); error != 0) {
                PoolFault failed = fault(reading ? "read" : "write", error);
                failed.end.reading = reading;
                failed.end.offset = offset;
                return failed;
            }
            if (reading && verify_) {
                if (const auto mismatch = verify(piece, stream, from)) {
                    PoolFault failed = fault("read", 0);
                    failed.end.reading = true;
                    failed.end.mismatch = mismatch;
                    return failed;
                }
                verified_bytes_ += piece.size();
            }
            from += piece.size();
        }
        return {};
    }

    const PoolRule& rule_;
    const std::vector<Descriptor>& directories_;
    std::span<std::byte> buffer_;
    ItemName name_;
    bool verify_;
    int descriptor_ = -1;
    std::uint64_t item_ = 0;
    std::uint64_t verified_bytes_ = 0;
};

}  // namespace strakes
