// The calls of backend/posix.hpp as inline system calls (backend/system_call.hpp), for the cost of the kernel and the
// file system without the C library. Libraries that intercept the C library do not see these calls, and applications
// do not make them; the backend is for bench/.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "backend/posix.hpp"
#include "backend/system_call.hpp"

namespace strakes {

struct Raw : Posix {
    static Opened open(int directory, const char* name, int flags) noexcept {
        const long result = system_call(SYS_openat, directory, name, flags, kFileMode);
        return result < 0 ? Opened{-1, static_cast<int>(-result)} : Opened{static_cast<int>(result), 0};
    }
    // Linux closes the descriptor even if it returns EINTR; a second close() could close another file.
    static int close(int descriptor) noexcept {
        const long result = detail::system_call(SYS_close, descriptor, 0, 0, 0, 0);
        return result == -EINTR ? 0 : error_of(result);
    }

    static Moved read_at(int descriptor, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        return moved(system_call(SYS_pread64, descriptor, to, bytes, offset));
    }
    static Moved write_at(int descriptor, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
        return moved(system_call(SYS_pwrite64, descriptor, from, bytes, offset));
    }
    static int synchronise(int descriptor) noexcept { return error_of(system_call(SYS_fsync, descriptor)); }

    static int make_node(int directory, const char* name) noexcept {
        return error_of(system_call(SYS_mknodat, directory, name, S_IFREG | kFileMode, 0));
    }
    static int make_directory(int directory, const char* name) noexcept {
        return error_of(system_call(SYS_mkdirat, directory, name, kDirectoryMode));
    }
    static int status(int directory, const char* name) noexcept {
        struct stat unused;
        return error_of(system_call(SYS_newfstatat, directory, name, &unused, AT_SYMLINK_NOFOLLOW));
    }
    static int rename(int directory, const char* from, const char* to) noexcept {
        return error_of(system_call(SYS_renameat2, directory, from, directory, to, 0));
    }
    static int remove_file(int directory, const char* name) noexcept {
        return error_of(system_call(SYS_unlinkat, directory, name, 0));
    }
    static int remove_directory(int directory, const char* name) noexcept {
        return error_of(system_call(SYS_unlinkat, directory, name, AT_REMOVEDIR));
    }

  private:
    static int error_of(long result) noexcept { return result < 0 ? static_cast<int>(-result) : 0; }
    static Moved moved(long result) noexcept {
        return result < 0 ? Moved{0, static_cast<int>(-result)} : Moved{static_cast<std::size_t>(result), 0};
    }
};

}  // namespace strakes
