// An io_uring of one rank.
#pragma once

#include <liburing.h>

#include <cstdint>
#include <span>

namespace strakes {

// Who looks for what, again and again, instead of being told.
struct RingPolling {
    bool submission = false;  // a thread of the kernel, for requests: handing over takes no system call (SQPOLL)
    bool completion = false;  // the rank, at the device, for completions: no interrupts (IOPOLL); needs O_DIRECT
};

class Ring {
  public:
    Ring() noexcept = default;
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;
    ~Ring() { stop(); }

    // Room for so many requests at a time; called by the thread that will use it. 0 or an error number.
    int start(std::uint32_t depth, RingPolling polling = {}) noexcept;
    // Ends what is still under way.
    void stop() noexcept;
    [[nodiscard]] bool is_there() const noexcept { return there_; }

    // The pages of these buffers stay pinned: no request pays for that. 0 or an error number.
    int register_buffers(std::span<const iovec> buffers) noexcept;
    int register_file(int descriptor) noexcept { return -::io_uring_register_files(&ring_, &descriptor, 1); }
    int unregister_file() noexcept { return -::io_uring_unregister_files(&ring_); }

    // The next request to fill in; there is always one, as long as no more than `depth` are under way.
    [[nodiscard]] io_uring_sqe* next() noexcept { return ::io_uring_get_sqe(&ring_); }

    // Hands over what was filled in. What it could not, and why, submit_and_wait() finds.
    void submit() noexcept { static_cast<void>(::io_uring_submit(&ring_)); }

    // Hands over what was filled in and waits until at least one is complete. 0 or an error number.
    int submit_and_wait() noexcept {
        for (;;) {
            const int submitted = ::io_uring_submit_and_wait(&ring_, 1);
            if (submitted >= 0) return 0;
            // Short of memory for requests: those under way give some back. Interrupted: once more.
            if (submitted != -EINTR && submitted != -EAGAIN && submitted != -EBUSY) return -submitted;
            if (::io_uring_cq_ready(&ring_) > 0) return 0;
        }
    }

    // Calls done(tag, result) for each complete request.
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
