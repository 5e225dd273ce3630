// One of several processes that were started together, from their first words to each other to its exit status. How
// bytes go between them is the post's business.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "crew/process_crew.hpp"
#include "protocol/output.hpp"
#include "team/post.hpp"

namespace strakes {

struct Joining {
    Post& post;
    std::string introduction;  // of this process (Crowd::introduction())
    std::string_view version;  // of this engine
    std::string library;       // that carries the post, as it calls itself
    std::uint32_t tasks = 0;   // that the launcher says it started; 0 when it does not say
    int input = -1;            // of rank 0: plans
    int signals = -1;          // a signalfd of those that end the session
    Output& output;
    std::chrono::milliseconds gone_after = ProcessCrew::kGoneAfter;
    // Where this process stands among the others, as soon as it is known.
    std::function<void(const Crowd&)> when_known = [](const Crowd&) {};
    // The crew, for as long as there is one; null afterwards.
    std::function<void(ProcessCrew*)> with_crew = [](ProcessCrew*) {};
    // By the calling thread, which performs plans from then on; the one that watches has been started.
    std::function<void()> before_plans = [] {};
};

// As STRAKES_SILENCE_S says, or the usual time: for how long a process or a node may be silent.
[[nodiscard]] std::chrono::milliseconds chosen_silence(const char* seconds);

// By the thread that may use the post.
int run_together(const Joining& joining);

}  // namespace strakes
