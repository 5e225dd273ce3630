// The sequence of requests of each operation.
#ifdef STRAKES_URING
#include "backend/uring_item.hpp"

#include <algorithm>
#include <cerrno>

namespace strakes {

namespace {

const char* call_of(MetadataOperation operation) noexcept {
    switch (operation) {
        using enum MetadataOperation;
        case dir_create:
            return "mkdir";
        case dir_stat:
        case file_stat:
            return "stat";
        case dir_rename:
        case file_rename:
            return "rename";
        case dir_remove:
            return "rmdir";
        case file_remove:
            return "unlink";
        default:
            return "open";
    }
}

}  // namespace

void UringItem::begin(MetadataOperation operation, int directory, const char* name, const char* to,
                      const Data& data) noexcept {
    using enum MetadataOperation;
    operation_ = operation;
    directory_ = directory;
    name_ = name;
    to_ = to;
    call_ = call_of(operation);
    error_ = 0;
    data_ = data;
    moved_ = 0;
    file_ = -1;
    const bool opens = operation == file_create || operation == file_open_close || operation == file_read;
    step_ = opens ? Step::open : Step::only;
}

void UringItem::push(Ring& ring, std::uint32_t tag) noexcept {
    using enum MetadataOperation;
    io_uring_sqe* entry = ring.next();
    if (step_ == Step::open) {
        const int flags = operation_ == file_create ? O_CREAT | O_EXCL | O_WRONLY : O_RDONLY | O_NOFOLLOW;
        ::io_uring_prep_openat(entry, directory_, name_, flags, Posix::kFileMode);
    } else if (step_ == Step::move) {
        // A file larger than the buffer is written from it repeatedly; renew() makes every piece different.
        const std::uint64_t size = data_.buffer.size();
        if (!reading() && moved_ % size == 0)
            renew(data_.buffer, data_.stream, data_.number * ((data_.bytes + size - 1) / size) + moved_ / size);
        const std::span<std::byte> part = data_.buffer.subspan(moved_ % size);
        const auto bytes = static_cast<unsigned>(std::min<std::uint64_t>(part.size(), data_.bytes - moved_));
        if (reading())
            ::io_uring_prep_read(entry, file_, part.data(), bytes, moved_);
        else
            ::io_uring_prep_write(entry, file_, part.data(), bytes, moved_);
    } else if (step_ == Step::close) {
        ::io_uring_prep_close(entry, file_);
    } else if (operation_ == dir_create) {
        ::io_uring_prep_mkdirat(entry, directory_, name_, Posix::kDirectoryMode);
    } else if (operation_ == dir_rename || operation_ == file_rename) {
        ::io_uring_prep_renameat(entry, directory_, name_, directory_, to_, 0);
    } else if (operation_ == dir_remove || operation_ == file_remove) {
        ::io_uring_prep_unlinkat(entry, directory_, name_, operation_ == dir_remove ? AT_REMOVEDIR : 0);
    } else {
        ::io_uring_prep_statx(entry, directory_, name_, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &status_);
    }
    entry->user_data = tag;
}

bool UringItem::take(int result) noexcept {
    if (result == -EAGAIN || (result == -EINTR && step_ != Step::close)) return false;
    switch (step_) {
        case Step::open:
            return after_open(result);
        case Step::move:
            return after_move(result);
        case Step::close:
            // Linux closes the descriptor even if it returns EINTR.
            if (result < 0 && result != -EINTR) return fail("close", -result);
            return true;
        case Step::only:
            return result < 0 ? fail(call_, -result) : true;
    }
    return true;
}

bool UringItem::after_open(int result) noexcept {
    if (result < 0) return fail(call_, -result);
    file_ = result;
    step_ = data_.bytes > 0 && operation_ != MetadataOperation::file_open_close ? Step::move : Step::close;
    return false;
}

bool UringItem::after_move(int result) noexcept {
    if (result <= 0) {
        static_cast<void>(Posix::close(file_));
        return fail(reading() ? "read" : "write", result < 0 ? -result : kEnded);
    }
    moved_ += static_cast<std::uint64_t>(result);
    if (moved_ == data_.bytes) step_ = Step::close;
    return false;
}

bool UringItem::fail(const char* call, int error) noexcept {
    call_ = call;
    error_ = error;
    return true;
}

}  // namespace strakes
#endif
