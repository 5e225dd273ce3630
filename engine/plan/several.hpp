// Ranks that work in several directories by turns: rank r in number r mod their count, and in no other.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.hpp"

namespace strakes {

// What in the plan needs ranks to work in each other's directories; empty where nothing does.
[[nodiscard]] std::string against_several(const Plan& plan, std::uint32_t directories);

}  // namespace strakes
