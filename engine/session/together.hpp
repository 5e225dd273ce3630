// Runs one of several processes that were started together. A Post transports messages between the processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "crew/process_crew.hpp"
#include "protocol/report.hpp"
#include "team/post.hpp"

namespace strakes {

struct Joining {
    Post& post;
    std::string introduction;  // description of this process (Crowd::introduction())
    std::string_view version;
    std::string library;      // name of the library behind `post`
    std::uint32_t tasks = 0;  // number of tasks according to the launcher; 0: unknown
    int input = -1;           // descriptor from which rank 0 reads plans
    int signals = -1;         // a signalfd for the signals that end the session
    Output& output;
    std::chrono::milliseconds gone_after = ProcessCrew::kGoneAfter;
    // Called after the processes have exchanged their introductions.
    std::function<void(const Crowd&)> when_known = [](const Crowd&) {};
    // Called with the crew when it exists, and with null before it is destroyed.
    std::function<void(ProcessCrew*)> with_crew = [](ProcessCrew*) {};
    // Called by the thread that performs plans, before the first plan, when the watching thread is already running.
    std::function<void()> before_plans = [] {};
};

// Return how long a process or node may be silent: the value of STRAKES_SILENCE_S within its bounds, or the default if
// `seconds` is null or not a number.
[[nodiscard]] std::chrono::milliseconds chosen_silence(const char* seconds);

// Must be called by the thread that may use the post. Return the exit status.
int run_together(const Joining& joining);

}  // namespace strakes
