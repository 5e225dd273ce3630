// Uses openat2(2), or openat(2) and mount ids where openat2 is missing (before Linux 5.6) or forbidden by seccomp.
#include "system/enter.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "system/descriptor.hpp"

namespace strakes {

namespace {

constexpr int kOpen = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// Maximum number of calls of openat2, which fails with EAGAIN if a mount or rename happens at the same time.
constexpr int kMostTries = 100;

// Read the mount id from /proc/self/fdinfo (Linux 3.15), for kernels whose statx(2) does not return it (before 5.8).
std::optional<std::uint64_t> mount_number_in_proc(int descriptor) noexcept {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", descriptor);
    const Descriptor file(::open(path.data(), O_RDONLY | O_CLOEXEC));
    std::array<char, 1024> text{};
    const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : -1;
    if (size <= 0) return std::nullopt;
    constexpr std::string_view kKey = "mnt_id:\t";
    const std::string_view all(text.data(), static_cast<std::size_t>(size));
    const std::size_t at = all.find(kKey);
    std::uint64_t number = 0;
    if (at == std::string_view::npos) return std::nullopt;
    const auto [end, error] = std::from_chars(all.data() + at + kKey.size(), all.data() + all.size(), number);
    return error == std::errc{} ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> mount_number(int descriptor) noexcept {
#ifdef STATX_MNT_ID
    struct statx status{};
    if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) == 0 && (status.stx_mask & STATX_MNT_ID) != 0)
        return status.stx_mnt_id;
#endif
    return mount_number_in_proc(descriptor);
}

}  // namespace

int detail::enter_by_mount_number(int parent, const char* name) noexcept {
    if (std::strchr(name, '/') != nullptr || std::strcmp(name, "..") == 0) return -EXDEV;
    Descriptor directory(::openat(parent, name, kOpen));
    if (!directory) return -errno;
    const auto above = mount_number(parent);
    const auto here = mount_number(directory.get());
    if (!above || above != here) return -EXDEV;
    return directory.release();
}

int enter_directory(int parent, const char* name) noexcept {
    open_how how{};
    how.flags = kOpen;
    how.resolve = RESOLVE_NO_XDEV | RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    for (int tries = 0; tries < kMostTries; ++tries) {
        const long result = ::syscall(SYS_openat2, parent, name, &how, sizeof how);
        if (result >= 0) return static_cast<int>(result);
        if (errno == ENOSYS || errno == EPERM) return detail::enter_by_mount_number(parent, name);
        if (errno != EAGAIN && errno != EINTR) return -errno;
    }
    return -EAGAIN;
}

}  // namespace strakes
