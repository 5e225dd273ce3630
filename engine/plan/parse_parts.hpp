// What the parsers of several kinds need, and the parsers that have files of their own.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "plan/object_reader.hpp"
#include "plan/plan.hpp"

namespace strakes {

inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50U;
inline constexpr std::uint64_t kMostCount = std::uint64_t{1} << 30U;
inline constexpr std::uint64_t kMostPhases = 64;
inline constexpr std::uint64_t kMostRanks = 65536;
inline constexpr std::uint64_t kAnyCount = UINT64_MAX;
inline constexpr double kDay = 86400;

std::string parse_name(const ObjectReader& reader, std::string_view key);
Stop parse_stop(const ObjectReader& phase);
Hints parse_hints(const ObjectReader& phase);

SmallFilesPhase parse_small_files(const nlohmann::json& body, const std::string& path);
ProbePhase parse_probe(const nlohmann::json& body, const std::string& path);
StagePhase parse_stage(const nlohmann::json& body, const std::string& path);

// One phase of a kind that a part may have, or of any.
enum class Kinds : std::uint8_t { of_parts, all };
Phase parse_phase(const nlohmann::json& body, const std::string& path, Kinds kinds);
// The phase and, after it, its parts.
std::vector<Phase> parse_mixed(const nlohmann::json& body, const std::string& path);

}  // namespace strakes
