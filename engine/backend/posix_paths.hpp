// The POSIX calls as programs make them that hold no directory open: by the absolute path, through the C library.
// The shape is that of backend/posix.hpp; where it has a directory, there is none.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "backend/posix.hpp"

namespace strakes {

struct PosixPaths {
    using Opened = Posix::Opened;
    using Moved = Posix::Moved;

    static Opened open(int /*directory*/, const char* path, int flags) noexcept {
        const int descriptor = Posix::until_done([&] { return ::open(path, flags, Posix::kFileMode); });
        return {descriptor, descriptor < 0 ? errno : 0};
    }
    // Linux closes the descriptor also where it says EINTR.
    static int close(int descriptor) noexcept { return ::close(descriptor) == 0 || errno == EINTR ? 0 : errno; }

    static Moved read_at(int descriptor, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        return Posix::moved(
            Posix::until_done([&] { return ::pread(descriptor, to, bytes, static_cast<off_t>(offset)); }));
    }
    static Moved write_at(int descriptor, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
        return Posix::moved(
            Posix::until_done([&] { return ::pwrite(descriptor, from, bytes, static_cast<off_t>(offset)); }));
    }
    static int synchronise(int descriptor) noexcept {
        return Posix::error_of([&] { return ::fsync(descriptor); });
    }

    static int make_node(int /*directory*/, const char* path) noexcept {
        return Posix::error_of([&] { return ::mknod(path, S_IFREG | Posix::kFileMode, 0); });
    }
    static int make_directory(int /*directory*/, const char* path) noexcept {
        return Posix::error_of([&] { return ::mkdir(path, Posix::kDirectoryMode); });
    }
    static int status(int /*directory*/, const char* path) noexcept {
        struct stat unused;
        return Posix::error_of([&] { return ::stat(path, &unused); });
    }
    static int rename(int /*directory*/, const char* from, const char* to) noexcept {
        return Posix::error_of([&] { return std::rename(from, to); });
    }
    static int remove_file(int /*directory*/, const char* path) noexcept {
        return Posix::error_of([&] { return ::unlink(path); });
    }
    static int remove_directory(int /*directory*/, const char* path) noexcept {
        return Posix::error_of([&] { return ::rmdir(path); });
    }
};

}  // namespace strakes
