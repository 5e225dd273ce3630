// POSIX calls through the C library, so that interception libraries (Darshan, DAOS, UnifyFS) see them. Errors are
// positive numbers; interrupted calls are repeated.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "backend/file.hpp"
#include "system/descriptor.hpp"
#include "system/enter.hpp"

namespace strakes {

struct Posix {
    static constexpr mode_t kFileMode = 0600;
    static constexpr mode_t kDirectoryMode = 0700;
    static constexpr const char* kAttribute = "user.strakes";

    struct Opened {
        int descriptor;
        int error;
    };
    using Moved = FileMove;
    using Handle = Descriptor;
    static constexpr bool kKernelFiles = true;  // descriptors and page cache are the kernel's
    static constexpr const char *kSynchroniseCall = "fsync", *kCloseCall = "close";

    // Does nothing: all ranks of a process share the descriptor of the plan's directory.
    static FileStep connect(std::uint32_t /*rank*/) noexcept { return {}; }
    static int root(int of_the_process, std::uint32_t /*rank*/) noexcept { return of_the_process; }

    static Opened open(int directory, const char* name, int flags) noexcept {
        const int descriptor = until_done([&] { return ::openat(directory, name, flags, kFileMode); });
        return {descriptor, descriptor < 0 ? errno : 0};
    }
    static Opened enter(int directory, const char* name) noexcept {
        const int result = enter_directory(directory, name);
        return result < 0 ? Opened{-1, -result} : Opened{result, 0};
    }
    // Linux closes the descriptor even if it returns EINTR; a second close() could close another file.
    static int close(int descriptor) noexcept { return ::close(descriptor) == 0 || errno == EINTR ? 0 : errno; }

    static Moved read_at(int descriptor, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        return moved(until_done([&] { return ::pread(descriptor, to, bytes, static_cast<off_t>(offset)); }));
    }
    static Moved write_at(int descriptor, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
        return moved(until_done([&] { return ::pwrite(descriptor, from, bytes, static_cast<off_t>(offset)); }));
    }
    static int synchronise(int descriptor) noexcept {
        return error_of([&] { return ::fsync(descriptor); });
    }

    static int make_node(int directory, const char* name) noexcept {
        return error_of([&] { return ::mknodat(directory, name, S_IFREG | kFileMode, 0); });
    }
    static int make_directory(int directory, const char* name) noexcept {
        return error_of([&] { return ::mkdirat(directory, name, kDirectoryMode); });
    }
    static int status(int directory, const char* name) noexcept {
        struct stat unused;
        return error_of([&] { return ::fstatat(directory, name, &unused, AT_SYMLINK_NOFOLLOW); });
    }
    static int rename(int directory, const char* from, const char* to) noexcept {
        return error_of([&] { return ::renameat(directory, from, directory, to); });
    }
    static int change_mode(int directory, const char* name, mode_t mode) noexcept {
        return error_of([&] { return ::fchmodat(directory, name, mode, 0); });
    }
    static int link(int directory, const char* from, const char* to) noexcept {
        return error_of([&] { return ::linkat(directory, from, directory, to, 0); });
    }
    // The C library has no *at() variants of these calls, so each function opens the file, acts on it and closes it.
    static FileStep truncate(int directory, const char* name, std::uint64_t bytes) noexcept {
        return on_open(directory, name, O_WRONLY, "ftruncate", [&](int descriptor) {
            return error_of([&] { return ::ftruncate(descriptor, static_cast<off_t>(bytes)); });
        });
    }
    static FileStep set_attribute(int directory, const char* name, std::span<const std::byte> value) noexcept {
        return on_open(directory, name, O_RDONLY, "fsetxattr", [&](int descriptor) {
            return error_of([&] { return ::fsetxattr(descriptor, kAttribute, value.data(), value.size(), 0); });
        });
    }
    static FileStep get_attribute(int directory, const char* name, std::span<std::byte> value) noexcept {
        return on_open(directory, name, O_RDONLY, "fgetxattr", [&](int descriptor) {
            return attribute_error(::fgetxattr(descriptor, kAttribute, value.data(), value.size()), value.size());
        });
    }
    static int remove_file(int directory, const char* name) noexcept {
        return error_of([&] { return ::unlinkat(directory, name, 0); });
    }
    static int remove_directory(int directory, const char* name) noexcept {
        return error_of([&] { return ::unlinkat(directory, name, AT_REMOVEDIR); });
    }

    template <class Call>
    static std::invoke_result_t<Call> until_done(Call call) noexcept {
        for (;;) {
            const auto result = call();
            if (result >= 0 || errno != EINTR) return result;
        }
    }
    template <class Call>
    static int error_of(Call call) noexcept {
        return until_done(call) < 0 ? errno : 0;
    }
    // Returns 0, an error number, or ENODATA if the length of the value is not the length that was set.
    static int attribute_error(ssize_t result, std::size_t bytes) noexcept {
        if (result < 0) return errno;
        return static_cast<std::size_t>(result) == bytes ? 0 : ENODATA;
    }
    static Moved moved(ssize_t result) noexcept {
        return result < 0 ? Moved{0, errno} : Moved{static_cast<std::size_t>(result), 0};
    }

  private:
    template <class Call>
    static FileStep on_open(int directory, const char* name, int flags, const char* what, Call call) noexcept {
        const auto [descriptor, open_error] = open(directory, name, flags | O_NOFOLLOW);
        if (open_error != 0) return {"open", open_error};
        const int error = call(descriptor);
        const int close_error = close(descriptor);
        return error != 0 ? FileStep{what, error} : FileStep{"close", close_error};
    }
};

}  // namespace strakes
