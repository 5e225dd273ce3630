// Residency of a file in this machine's page cache: evidence that a read came from memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace strakes {

struct Residency {
    // "cachestat", "mincore" or "none" (unknown; resident_bytes is 0).
    std::string_view method;
    std::uint64_t file_bytes;
    std::uint64_t resident_bytes;
};

// Return the residency of the file's first `bytes` bytes, by the best method that works.
Residency residency(int fd, std::uint64_t bytes);

// The single methods. Each function returns nullopt if the kernel or the file system does not support the method.
std::optional<Residency> residency_by_cachestat(int fd, std::uint64_t bytes);  // needs Linux 6.5
std::optional<Residency> residency_by_mincore(int fd, std::uint64_t bytes);    // needs a readable descriptor

[[nodiscard]] bool may_drop_system_caches() noexcept;

// Write back the file system that holds `directory`, then drop the system's clean pages, dentries and inodes. Return 0
// or an error number.
[[nodiscard]] int drop_system_caches(int directory) noexcept;

}  // namespace strakes
