// The path of an open directory.
#pragma once

#include <string>

namespace strakes {

// Return the current absolute path without symbolic links, or an empty string if the kernel reports none.
[[nodiscard]] std::string path_of(int directory);

}  // namespace strakes
