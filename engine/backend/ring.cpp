// Sets up a ring.
#ifdef STRAKES_URING
#include "backend/ring.hpp"

#include <array>
#include <cerrno>

namespace strakes {

namespace {

// In order of preference. Completions are processed when the rank asks for them, not as they arrive: from Linux 6.1 on
// the kernel leaves all of that work to the rank, from 5.19 on it at least does not interrupt the rank.
constexpr auto kModes = std::to_array<unsigned>({
#if defined(IORING_SETUP_SINGLE_ISSUER) && defined(IORING_SETUP_DEFER_TASKRUN)
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
#endif
#ifdef IORING_SETUP_COOP_TASKRUN
    IORING_SETUP_COOP_TASKRUN,
#endif
    0,
});
// With a kernel thread that submits requests (SQPOLL). That thread also processes the completions.
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
        // The kernel thread frees queue entries only after a whole batch, possibly later than their completions.
        result = ::io_uring_queue_init_params(polling.submission ? 2 * depth : depth, &ring_, &parameters);
        if (result != -EINVAL) break;
    }
    there_ = result == 0;
#ifdef IORING_SETUP_COOP_TASKRUN
    // Saves the look-up of the ring's descriptor in each call. Kernels before 5.18 refuse, which does no harm.
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
