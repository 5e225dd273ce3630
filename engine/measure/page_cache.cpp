// Page-cache residency from cachestat(2), or from mincore(2) on kernels before 6.5.
#include "measure/page_cache.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "system/descriptor.hpp"

namespace strakes {

namespace {

// Number of cachestat(2) on every architecture but alpha. The C library may be too old to define the number.
constexpr long kSysCachestat = 451;

// Writing 3 to this file drops pages, dentries and inodes (Documentation/admin-guide/sysctl/vm.rst).
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

namespace {

std::optional<std::uint64_t> resident_pages(int fd, std::uint64_t offset, std::uint64_t length,
                                            std::vector<unsigned char>& vector) {
    void* address = mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (address == MAP_FAILED) return std::nullopt;  // NOLINT(performance-no-int-to-ptr): the system's macro
    vector.resize((length + page_bytes() - 1) / page_bytes());
    const int status = mincore(address, length, vector.data());
    munmap(address, length);
    if (status != 0) return std::nullopt;
    return static_cast<std::uint64_t>(
        std::count_if(vector.begin(), vector.end(), [](unsigned char state) { return (state & 1U) != 0; }));
}

}  // namespace

std::optional<Residency> residency_by_mincore(int fd, std::uint64_t bytes) {
    // One window at a time, because mincore(2) fills a vector with one byte per page.
    constexpr std::uint64_t kWindow = std::uint64_t{256} << 20U;
    std::vector<unsigned char> vector;
    std::uint64_t resident = 0;
    for (std::uint64_t offset = 0; offset < bytes; offset += kWindow) {
        const auto pages = resident_pages(fd, offset, std::min(kWindow, bytes - offset), vector);
        if (!pages) return std::nullopt;
        resident += *pages;
    }
    return Residency{"mincore", bytes, std::min(resident * page_bytes(), bytes)};
}

Residency residency(int fd, std::uint64_t bytes) {
    if (const auto found = residency_by_cachestat(fd, bytes)) return *found;
    if (const auto found = residency_by_mincore(fd, bytes)) return *found;
    return {.method = "none", .file_bytes = bytes, .resident_bytes = 0};
}

bool may_drop_system_caches() noexcept { return ::access(kDropCaches, W_OK) == 0; }

int drop_system_caches(int directory) noexcept {
    if (::syncfs(directory) != 0) return errno;
    const Descriptor file(::open(kDropCaches, O_WRONLY | O_CLOEXEC));
    if (!file) return errno;
    return ::write(file.get(), "3", 1) == 1 ? 0 : errno;
}

}  // namespace strakes
