// Entry point of the engine. Each executable implements it.
#pragma once

#include <span>
#include <string_view>

namespace strakes {

std::string_view engine_usage();

// `signals` is a signalfd for the signals that end the session. Return the exit status.
int run_engine(int signals, std::span<const std::string_view> arguments);

}  // namespace strakes
