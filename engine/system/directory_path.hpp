// The path of an open directory.
#pragma once

#include <string>

namespace strakes {

// As the kernel knows it now: absolute, without symbolic links; empty where it has none that can be told.
[[nodiscard]] std::string path_of(int directory);

}  // namespace strakes
