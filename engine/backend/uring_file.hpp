// A file that is read and written through io_uring: many requests in flight, registered buffers and a registered file.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/file.hpp"
#include "backend/posix.hpp"
#include "backend/ring.hpp"
#include "system/descriptor.hpp"

namespace strakes {

class UringFile {
  public:
    static constexpr bool kQueues = true;
    static constexpr bool kWritingReads = false;

    // A transfer in flight. It uses the slot's part of the buffer.
    struct Request {
        std::uint64_t offset = 0;
        std::uint64_t begun = 0;  // ticks
        std::size_t done = 0;     // bytes moved by earlier, short transfers
        bool reading = false;
    };

    // Must be called before prepare().
    void poll(RingPolling polling) noexcept { polling_ = polling; }
    // Sets up the ring for `depth` transfers, each with an equal part of the buffer.
    FileStep prepare(std::span<std::byte> buffer, std::uint32_t depth);
    FileStep attach(Descriptor descriptor, const FileUse& use) noexcept;
    FileStep synchronise() noexcept { return {"fsync", Posix::synchronise(descriptor_.get())}; }
    FileStep close() noexcept;
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(descriptor_); }

    [[nodiscard]] Request& request(std::uint32_t slot) noexcept { return requests_[slot]; }
    [[nodiscard]] std::span<std::byte> buffer(std::uint32_t slot) const noexcept {
        return buffer_.subspan(slot * transfer_bytes_, transfer_bytes_);
    }
    // Slots without a request.
    [[nodiscard]] std::vector<std::uint32_t>& free_slots() noexcept { return free_; }
    [[nodiscard]] std::uint32_t under_way() const noexcept {
        return static_cast<std::uint32_t>(requests_.size() - free_.size());
    }
    [[nodiscard]] Ring& ring() noexcept { return ring_; }

    // Fills in a request for the rest of the slot's transfer.
    void push(std::uint32_t slot) noexcept;

  private:
    Ring ring_;
    RingPolling polling_;
    Descriptor descriptor_;
    std::span<std::byte> buffer_;
    std::size_t transfer_bytes_ = 0;
    bool fixed_buffers_ = false;
    std::vector<Request> requests_;
    std::vector<std::uint32_t> free_;
};

}  // namespace strakes
