// Host name.
#pragma once

#include <string>

namespace strakes {

std::string host_name();

}  // namespace strakes
