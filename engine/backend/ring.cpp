// Setting up a ring.
#ifdef STRAKES_URING
#include "backend/ring.hpp"

#include <array>
#include <cerrno>

namespace strakes {

namespace {

// The best first. Completions are worked on when the rank asks for them, not whenever they come: from Linux 6.1 on all
// of that work is left to the rank, from 5.19 on the kernel at least does not interrupt it.
constexpr auto kModes = std::to_array<unsigned>({
#if defined(IORING_SETUP_SINGLE_ISSUER) && defined(IORING_SETUP_DEFER_TASKRUN)
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
#endif
#ifdef IORING_SETUP_COOP_TASKRUN
    IORING_SETUP_COOP_TASKRUN,
#endif
    0,
});
// With a thread of the kernel that hands over requests: it is that thread which works on completions.
constexpr auto kModesOfThread = std::to_array<unsigned>({
#ifdef IORING_SETUP_SINGLE_ISSUER
    IORING_SETUP_SQPOLL | IORING_SETUP_SINGLE_ISSUER,
#endif
    IORING_SETUP_SQPOLL,
});

}  // namespace

int Ring::start(std::uint32_t depth, RingPolling polling) noexcept {
    stop();
    int result = -EINVAL;
    const std::span<const unsigned> modes = polling.submission ? std::span<const unsigned>(kModesOfThread) : kModes;
    for (const unsigned mode : modes) {
        io_uring_params parameters{};
        parameters.flags = mode | (polling.completion ? IORING_SETUP_IOPOLL : 0U);
        // The thread gives places back when it is through with all it has found, which may be later than a completion.
        result = ::io_uring_queue_init_params(polling.submission ? 2 * depth : depth, &ring_, &parameters);
        if (result != -EINVAL) break;
    }
    there_ = result == 0;
#ifdef IORING_SETUP_COOP_TASKRUN
    // Spares each call the look-up of the ring's descriptor. A kernel that cannot (before 5.18) does without.
    if (there_) static_cast<void>(::io_uring_register_ring_fd(&ring_));
#endif
    return -result;
}

void Ring::stop() noexcept {
    if (there_) ::io_uring_queue_exit(&ring_);
    there_ = false;
}

int Ring::register_buffers(std::span<const iovec> buffers) noexcept {
    return -::io_uring_register_buffers(&ring_, buffers.data(), static_cast<unsigned>(buffers.size()));
}

}  // namespace strakes
#endif
