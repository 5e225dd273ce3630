// Treatment of cached data before a phase.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace strakes {

enum class Cache : std::uint8_t { as_is, drop, drop_system };
inline constexpr std::array kCaches = std::to_array<std::pair<std::string_view, Cache>>(
    {{"as-is", Cache::as_is}, {"drop", Cache::drop}, {"drop-system", Cache::drop_system}});

}  // namespace strakes
