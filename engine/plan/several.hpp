// Distribution of ranks over several directories: rank r works only in directory r modulo their number.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.hpp"

namespace strakes {

// Return why the plan cannot run in several directories, or an empty string.
[[nodiscard]] std::string against_several(const Plan& plan, std::uint32_t directories);

}  // namespace strakes
