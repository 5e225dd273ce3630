// The io_uring of one rank.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <span>

namespace strakes {

// Polling in place of system calls and interrupts.
struct RingPolling {
    bool submission = false;  // a kernel thread polls for requests: submission takes no system call (SQPOLL)
    bool completion = false;  // the rank polls the device for completions: no interrupts (IOPOLL); needs O_DIRECT
};

class Ring {
  public:
    Ring() noexcept = default;
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    ~Ring() { stop(); }

    // Sets up a ring for `depth` requests in flight. Must be called by the thread that uses the ring. Returns 0 or an
    // error number.
    int start(std::uint32_t depth, RingPolling polling = {}) noexcept;
    // Cancels the requests in flight and frees the ring.
    void stop() noexcept;
    [[nodiscard]] bool is_there() const noexcept { return there_; }

    // Pins the pages of the buffers, so that no request has to. Returns 0 or an error number.
    int register_buffers(std::span<const iovec> buffers) noexcept;
    int register_file(int descriptor) noexcept { return -::io_uring_register_files(&ring_, &descriptor, 1); }
    int unregister_file() noexcept { return -::io_uring_unregister_files(&ring_); }

    // Returns the next request to fill in. Not null as long as at most `depth` requests are in flight.
    [[nodiscard]] io_uring_sqe* next() noexcept { return ::io_uring_get_sqe(&ring_); }

    // Submits the requests filled in. If the kernel refuses some, they stay queued for submit_and_wait().
    void submit() noexcept { static_cast<void>(::io_uring_submit(&ring_)); }

    // Submits the requests filled in and waits for a completion. Returns 0 or an error number.
    int submit_and_wait() noexcept {
        for (;;) {
            const int submitted = ::io_uring_submit_and_wait(&ring_, 1);
            if (submitted >= 0) return 0;
            // EAGAIN and EBUSY: the kernel is short of memory until requests in flight complete.
            if (submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) return -submitted;
            if (::io_uring_cq_ready(&ring_) > 0) return 0;
        }
    }

    // Calls done(tag, result) for each completed request.
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
    io_uring ring_{};
    bool there_ = false;
};

}  // namespace strakes
