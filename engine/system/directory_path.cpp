// Reads the path from /proc.
#include "system/directory_path.hpp"

#include <unistd.h>

#include <array>
#include <climits>

namespace strakes {

std::string path_of(int directory) {
    std::array<char, PATH_MAX> text{};
    const std::string link = "/proc/thread-self/fd/" + std::to_string(directory);
    const ssize_t size = ::readlink(link.c_str(), text.data(), text.size());
    if (size <= 0 || text.front() != '/') return {};
    return {text.data(), static_cast<std::size_t>(size)};
}

}  // namespace strakes
