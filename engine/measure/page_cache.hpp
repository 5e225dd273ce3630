// How much of a file lies in this machine's page cache: the evidence behind "this read came from memory".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace strakes {

struct Residency {
    std::string_view method;  // "cachestat", "mincore" or "none" (not known: resident_bytes is 0)
    std::uint64_t file_bytes;
    std::uint64_t resident_bytes;
};

// Of the first `bytes` bytes of the file, by the best way the kernel offers.
Residency residency(int fd, std::uint64_t bytes);

// One way each; nothing when the kernel or the file system does not offer it.
std::optional<Residency> residency_by_cachestat(int fd, std::uint64_t bytes);  // Linux 6.5
std::optional<Residency> residency_by_mincore(int fd, std::uint64_t bytes);    // needs a readable descriptor

// Whether this user may drop the caches of the whole system.
[[nodiscard]] bool may_drop_system_caches() noexcept;

// Writes back the file system that holds `directory` and drops what the system's caches hold that is clean: pages,
// directory entries, inodes. 0 or an error number.
[[nodiscard]] int drop_system_caches(int directory) noexcept;

}  // namespace strakes
