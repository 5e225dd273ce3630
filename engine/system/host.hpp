// The name of this host.
#pragma once

#include <string>

namespace strakes {

std::string host_name();

}  // namespace strakes
