// Entry point of the engine. Each executable implements it.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace strakes {

std::string_view engine_usage();

// `signals` is a signalfd for the signals that end the session. Return the exit status.
int run_engine(int signals, std::span<const std::string_view> arguments);

// Delete all objects under the prefix DIRECTORY/ID/ if it holds the marker of strakes. Print one line of JSON:
// {"removed": 3} or {"why": ...} on failure. Return the exit status, 0 or 1.
int remove_objects(const std::string& prefix);

}  // namespace strakes
