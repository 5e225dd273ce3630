// Setting up a ring.
#ifdef STRAKES_URING
#include "backend/ring.hpp"

#include <cerrno>

namespace strakes {

int Ring::start(std::uint32_t depth) noexcept {
    stop();
    io_uring_params parameters{};
#if defined(IORING_SETUP_SINGLE_ISSUER) && defined(IORING_SETUP_DEFER_TASKRUN)
    // Completions are worked on when the rank asks for them, not whenever they come (Linux 6.1).
    parameters.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
#endif
    int result = ::io_uring_queue_init_params(depth, &ring_, &parameters);
    if (result == -EINVAL && parameters.flags != 0) {
        parameters = {};
        result = ::io_uring_queue_init_params(depth, &ring_, &parameters);
    }
    there_ = result == 0;
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
