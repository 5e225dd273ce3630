// The engine from its hello to its exit status; each of the executables has its own.
#pragma once

#include <span>
#include <string_view>

namespace strakes {

std::string_view engine_usage();

// `signals` is a signalfd of those that end the session.
int run_engine(int signals, std::span<const std::string_view> arguments);

}  // namespace strakes
