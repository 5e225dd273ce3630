// Bytes of a file that nobody has written.
#pragma once

#include <cstdint>

namespace strakes {

// Of [begin, end): those in holes and beyond the end of the file. Whole blocks only; 0 where the file system does not
// say.
[[nodiscard]] std::uint64_t hole_bytes(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept;

}  // namespace strakes
