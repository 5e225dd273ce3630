// Walks a file with SEEK_DATA and SEEK_HOLE.
#include "system/holes.hpp"

#include <unistd.h>

#include <cerrno>

namespace strakes {

std::uint64_t hole_bytes(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept {
    std::uint64_t holes = 0;
    while (begin < end) {
        const off_t data = ::lseek(descriptor, static_cast<off_t>(begin), SEEK_DATA);
        if (data < 0 && errno != ENXIO) return holes;
        if (data < 0 || static_cast<std::uint64_t>(data) >= end) return holes + end - begin;
        holes += static_cast<std::uint64_t>(data) - begin;
        const off_t hole = ::lseek(descriptor, data, SEEK_HOLE);
        if (hole <= data) return holes;
        begin = static_cast<std::uint64_t>(hole);
    }
    return holes;
}

}  // namespace strakes
