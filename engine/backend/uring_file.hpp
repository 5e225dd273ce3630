// A file that is read and written through io_uring: many requests in flight, registered buffers and a registered file.
#pragma once

#include <liburing.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/file.hpp"
#include "backend/posix.hpp"
#include "system/descriptor.hpp"

namespace strakes {

class Ring {
  public:
    Ring() noexcept = default;
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    ~Ring() { stop(); }

    // Sets up a ring for `depth` requests in flight. Must be called by the thread that uses the ring. Returns 0 or an
    // error number.
    int start(std::uint32_t depth) noexcept {
        stop();
        int result = -EINVAL;
        for (const unsigned mode : kModes) {
            io_uring_params parameters{};
            parameters.flags = mode;
            result = ::io_uring_queue_init_params(depth, &ring_, &parameters);
            if (result != -EINVAL) break;
        }
        there_ = result == 0;
#ifdef IORING_SETUP_COOP_TASKRUN
        // Saves the kernel a look-up of the ring in each call. Kernels before 5.18 refuse this, which is harmless.
        if (there_) static_cast<void>(::io_uring_register_ring_fd(&ring_));
#endif
        return -result;
    }
    // Cancels the requests in flight and frees the ring.
    void stop() noexcept {
        if (there_) ::io_uring_queue_exit(&ring_);
        there_ = false;
    }
    [[nodiscard]] bool is_there() const noexcept { return there_; }

    // Pins the pages of the buffers once, so that requests need not pin pages. Returns 0 or an error number.
    int register_buffers(std::span<const iovec> buffers) noexcept {
        return -::io_uring_register_buffers(&ring_, buffers.data(), static_cast<unsigned>(buffers.size()));
    }
    int register_file(int descriptor) noexcept { return -::io_uring_register_files(&ring_, &descriptor, 1); }
    int unregister_file() noexcept { return -::io_uring_unregister_files(&ring_); }

    // Returns the next request to fill in. The result is not null if at most `depth` requests are in flight.
    [[nodiscard]] io_uring_sqe* next() noexcept { return ::io_uring_get_sqe(&ring_); }

    // Submits the requests filled in. Requests that the kernel refuses stay queued for submit_and_wait().
    void submit() noexcept { static_cast<void>(::io_uring_submit(&ring_)); }

    int submit_and_wait() noexcept {
        for (;;) {
            const int submitted = ::io_uring_submit_and_wait(&ring_, 1);
            if (submitted >= 0) return 0;
            // EAGAIN and EBUSY: the kernel is short of memory until requests in flight complete.
            if (submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) return -submitted;
            if (::io_uring_cq_ready(&ring_) > 0) return 0;
        }
    }

    template <class Done>
    void reap(Done done) noexcept {
        io_uring_cqe* complete = nullptr;
        unsigned head = 0;
        unsigned count = 0;
        io_uring_for_each_cqe(&ring_, head, complete) {
            done(static_cast<std::uint32_t>(complete->user_data), complete->res);
            ++count;
        }
        ::io_uring_cq_advance(&ring_, count);
    }

  private:
    // Modes of the ring, the preferred mode first. From Linux 6.1 on, the kernel processes completions only when the
    // rank asks for them. From 5.19 on, the kernel at least does not interrupt the rank to process them.
    static constexpr auto kModes = std::to_array<unsigned>({
#if defined(IORING_SETUP_SINGLE_ISSUER) && defined(IORING_SETUP_DEFER_TASKRUN)
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
#endif
#ifdef IORING_SETUP_COOP_TASKRUN
        IORING_SETUP_COOP_TASKRUN,
#endif
        0,
    });

    io_uring ring_{};
    bool there_ = false;
};

class UringFile {
  public:
    static constexpr bool kQueues = true;
    static constexpr bool kWritingReads = false;

    // A transfer in flight, whose data is in the slot's part of the buffer.
    struct Request {
        std::uint64_t offset = 0;
        std::uint64_t begun = 0;  // start time in ticks
        std::size_t done = 0;     // bytes moved by earlier, short transfers
        bool reading = false;
    };

    FileStep prepare(std::span<std::byte> buffer, std::uint32_t depth) {
        buffer_ = buffer;
        transfer_bytes_ = buffer.size() / depth;
        if (const int error = ring_.start(depth); error != 0) return {"io_uring_setup", error};
        requests_.assign(depth, {});
        free_.resize(depth);
        for (std::uint32_t slot = 0; slot < depth; ++slot) free_[slot] = depth - 1 - slot;
        std::vector<iovec> parts(depth);
        for (std::uint32_t slot = 0; slot < depth; ++slot) {
            const std::span<std::byte> part = this->buffer(slot);
            parts[slot] = {.iov_base = part.data(), .iov_len = part.size()};
        }
        // Registration fails for parts above 1 GiB or above the limit of locked memory. Requests then use unregistered
        // buffers, which is slower.
        fixed_buffers_ = ring_.register_buffers(parts) == 0;
        return {};
    }
    FileStep attach(Descriptor descriptor, const FileUse& /*use*/) noexcept {
        descriptor_ = std::move(descriptor);
        return {"io_uring_register", ring_.register_file(descriptor_.get())};
    }
    FileStep synchronise() noexcept { return {"fsync", Posix::synchronise(descriptor_.get())}; }
    FileStep close() noexcept {
        // Unregister the file first, because a registered file would stay open after close().
        const int error = ring_.is_there() ? ring_.unregister_file() : 0;
        if (error != 0) return {"io_uring_register", error};
        return {"close", Posix::close(descriptor_.release())};
    }
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(descriptor_); }

    [[nodiscard]] Request& request(std::uint32_t slot) noexcept { return requests_[slot]; }
    [[nodiscard]] std::span<std::byte> buffer(std::uint32_t slot) const noexcept {
        return buffer_.subspan(slot * transfer_bytes_, transfer_bytes_);
    }
    [[nodiscard]] std::vector<std::uint32_t>& free_slots() noexcept { return free_; }
    [[nodiscard]] std::uint32_t under_way() const noexcept {
        return static_cast<std::uint32_t>(requests_.size() - free_.size());
    }
    [[nodiscard]] Ring& ring() noexcept { return ring_; }

    void push(std::uint32_t slot) noexcept {
        const Request& request = requests_[slot];
        const std::span<std::byte> left = buffer(slot).subspan(request.done);
        const auto bytes = static_cast<unsigned>(std::min(left.size(), kMostBytes));
        const std::uint64_t offset = request.offset + request.done;
        io_uring_sqe* entry = ring_.next();
        const auto index = static_cast<int>(slot);
        if (request.reading && fixed_buffers_)
            ::io_uring_prep_read_fixed(entry, kOnlyFile, left.data(), bytes, offset, index);
        else if (request.reading)
            ::io_uring_prep_read(entry, kOnlyFile, left.data(), bytes, offset);
        else if (fixed_buffers_)
            ::io_uring_prep_write_fixed(entry, kOnlyFile, left.data(), bytes, offset, index);
        else
            ::io_uring_prep_write(entry, kOnlyFile, left.data(), bytes, offset);
        ::io_uring_sqe_set_flags(entry, IOSQE_FIXED_FILE);
        entry->user_data = slot;
    }

  private:
    static constexpr int kOnlyFile = 0;  // index of the only registered file
    // Maximum size of a request, as for a registered buffer. The loop continues a longer transfer by another request.
    static constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

    Ring ring_;
    Descriptor descriptor_;
    std::span<std::byte> buffer_;
    std::size_t transfer_bytes_ = 0;
    bool fixed_buffers_ = false;
    std::vector<Request> requests_;
    std::vector<std::uint32_t> free_;
};

}  // namespace strakes
