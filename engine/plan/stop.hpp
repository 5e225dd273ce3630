// Conditions that end a phase.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace strakes {

enum class StopRule : std::uint8_t { amount, stonewall, seconds, wear_out };
inline constexpr std::array kStopRules =
    std::to_array<std::pair<std::string_view, StopRule>>({{"amount", StopRule::amount},
                                                          {"stonewall", StopRule::stonewall},
                                                          {"seconds", StopRule::seconds},
                                                          {"wear-out", StopRule::wear_out}});

struct Stop {
    StopRule rule = StopRule::amount;
    double seconds = 0;
};

}  // namespace strakes
