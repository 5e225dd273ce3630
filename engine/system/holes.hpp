// Counts the bytes of a file that were never written.
#pragma once

#include <cstdint>

namespace strakes {

// Return the number of bytes of [begin, end) that lie in holes or beyond the end of the file. File systems report holes
// in whole blocks. On an error of lseek(2), return the number counted so far.
[[nodiscard]] std::uint64_t hole_bytes(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept;

}  // namespace strakes
