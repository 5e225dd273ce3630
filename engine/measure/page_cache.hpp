// How much of a file lies in this machine's page cache: the evidence behind "this read came from memory".
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace strakes {

struct Residency {
    // "cachestat", "mincore", "mincore-sample" (of some of its pages) or "none" (not known: resident_bytes is 0).
    std::string_view method;
    std::uint64_t file_bytes;
    std::uint64_t resident_bytes;
    std::uint64_t error_bytes = 0;  // by how much that may be wrong, with 95 % confidence, where it is a sample
};

// Of the first `bytes` bytes of the file, by the best way the kernel offers.
Residency residency(int fd, std::uint64_t bytes);

// One way each; nothing when the kernel or the file system does not offer it.
std::optional<Residency> residency_by_cachestat(int fd, std::uint64_t bytes);  // Linux 6.5
// Needs a readable descriptor. Of a file of more than `most` bytes it looks at as many, spread over it.
inline constexpr std::uint64_t kMostLookedAt = std::uint64_t{64} << 30U;
std::optional<Residency> residency_by_mincore(int fd, std::uint64_t bytes, std::uint64_t most = kMostLookedAt);

// Whether this user may drop the caches of the whole system.
[[nodiscard]] bool may_drop_system_caches() noexcept;

// Writes back the file system that holds `directory` and drops what the system's caches hold that is clean: pages,
// directory entries, inodes. 0 or an error number.
[[nodiscard]] int drop_system_caches(int directory) noexcept;

}  // namespace strakes
