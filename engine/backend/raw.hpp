// The calls of backend/posix.hpp as inline system calls, to measure the kernel and the file system without the C
// library. Libraries that intercept the C library do not see these calls, and applications do not make them, so only
// bench/ uses this backend.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backend/posix.hpp"

namespace strakes {

static_assert(sizeof(long) == 8, "offsets are passed as one word");

namespace detail {

[[gnu::always_inline]] inline long system_call(long number, long a, long b, long c, long d, long e) noexcept {
#if defined(__x86_64__)
    long result = number;
    register long fourth asm("r10") = d;
    register long fifth asm("r8") = e;
    asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long result asm("x0") = a;
    register long second asm("x1") = b;
    register long third asm("x2") = c;
    register long fourth asm("x3") = d;
    register long fifth asm("x4") = e;
    register long which asm("x8") = number;
    asm volatile("svc #0" : "+r"(result) : "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(which) : "memory");
    return result;
#else
    const long result = ::syscall(number, a, b, c, d, e);
    return result < 0 ? -errno : result;
#endif
}

template <class Value>
long word(Value value) noexcept {
    if constexpr (std::is_pointer_v<Value>)
        return reinterpret_cast<long>(value);
    else
        return static_cast<long>(value);
}

}  // namespace detail

// Returns the result of the call, or the negative error number. Repeats interrupted calls.
template <class A, class B = int, class C = int, class D = int, class E = int>
[[gnu::always_inline]] inline long system_call(long number, A a, B b = {}, C c = {}, D d = {}, E e = {}) noexcept {
    for (;;) {
        const long result = detail::system_call(number, detail::word(a), detail::word(b), detail::word(c),
                                                detail::word(d), detail::word(e));
        if (result != -EINTR) return result;
    }
}

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
