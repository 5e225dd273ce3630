// Host name from gethostname(2).
#include "system/host.hpp"

#include <unistd.h>

#include <array>

namespace strakes {

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace strakes
