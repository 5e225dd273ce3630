// Page-cache residency by cachestat(2), by mincore(2) on kernels before 6.5.
#include "measure/page_cache.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "system/descriptor.hpp"

namespace strakes {

namespace {

// The C library may be older than the kernel; the number is the same on every architecture but alpha.
constexpr long kSysCachestat = 451;

// Documentation/admin-guide/sysctl/vm.rst: 3 is pages, dentries and inodes.
constexpr const char* kDropCaches = "/proc/sys/vm/drop_caches";

// include/uapi/linux/mman.h
struct CachestatRange {
    std::uint64_t offset;
    std::uint64_t length;
};
struct Cachestat {
    std::uint64_t cached;
    std::uint64_t dirty;
    std::uint64_t writeback;
    std::uint64_t evicted;
    std::uint64_t recently_evicted;
};

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

std::optional<Residency> residency_by_cachestat(int fd, std::uint64_t bytes) {
    // A length of 0 would mean "to the end".
    if (bytes == 0) return Residency{"cachestat", 0, 0};
    CachestatRange range{0, bytes};
    Cachestat found{};
    if (syscall(kSysCachestat, fd, &range, &found, 0U) != 0) return std::nullopt;
    return Residency{"cachestat", bytes, std::min(found.cached * page_bytes(), bytes)};
}

std::optional<Residency> residency_by_mincore(int fd, std::uint64_t bytes) {
    // A window at a time: a vector of one byte a page for a whole large file would be large itself.
    constexpr std::uint64_t kWindow = std::uint64_t{256} << 20U;
    const std::uint64_t page = page_bytes();
    std::vector<unsigned char> vector;
    std::uint64_t resident_pages = 0;
    for (std::uint64_t offset = 0; offset < bytes; offset += kWindow) {
        const std::uint64_t length = std::min(kWindow, bytes - offset);
        void* address = mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
        if (address == MAP_FAILED) return std::nullopt;  // NOLINT(performance-no-int-to-ptr): the system's macro
        vector.resize((length + page - 1) / page);
        const int status = mincore(address, length, vector.data());
        munmap(address, length);
        if (status != 0) return std::nullopt;
        resident_pages += static_cast<std::uint64_t>(
            std::count_if(vector.begin(), vector.end(), [](unsigned char state) { return (state & 1U) != 0; }));
    }
    return Residency{"mincore", bytes, std::min(resident_pages * page, bytes)};
}

Residency residency(int fd, std::uint64_t bytes) {
    if (const auto found = residency_by_cachestat(fd, bytes)) return *found;
    if (const auto found = residency_by_mincore(fd, bytes)) return *found;
    return {"none", bytes, 0};
}

bool may_drop_system_caches() noexcept { return ::access(kDropCaches, W_OK) == 0; }

int drop_system_caches(int directory) noexcept {
    if (::syncfs(directory) != 0) return errno;
    const Descriptor file(::open(kDropCaches, O_WRONLY | O_CLOEXEC));
    if (!file) return errno;
    return ::write(file.get(), "3", 1) == 1 ? 0 : errno;
}

}  // namespace strakes
