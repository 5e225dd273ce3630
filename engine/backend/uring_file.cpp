// Registers buffers and files, and fills in requests.
#ifdef STRAKES_URING
#include "backend/uring_file.hpp"

#include <algorithm>
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
}  // namespace

int Ring::start(std::uint32_t depth) noexcept {
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

namespace {

constexpr int kOnlyFile = 0;  // index of the only registered file
// Largest request, the limit of a registered buffer. The loop continues a transfer that is longer.
constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

}  // namespace

FileStep UringFile::prepare(std::span<std::byte> buffer, std::uint32_t depth) {
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
    // Fails for parts above 1 GiB or the limit of locked memory. Requests then use unregistered buffers, more slowly.
    fixed_buffers_ = ring_.register_buffers(parts) == 0;
    return {};
}

FileStep UringFile::attach(Descriptor descriptor, const FileUse& /*use*/) noexcept {
    descriptor_ = std::move(descriptor);
    return {"io_uring_register", ring_.register_file(descriptor_.get())};
}

FileStep UringFile::close() noexcept {
    // The ring holds a registered file open, even after close().
    const int error = ring_.is_there() ? ring_.unregister_file() : 0;
    if (error != 0) return {"io_uring_register", error};
    return {"close", Posix::close(descriptor_.release())};
}

void UringFile::push(std::uint32_t slot) noexcept {
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

}  // namespace strakes
#endif
