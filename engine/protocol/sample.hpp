// Builds the sample of one phase from the tally of its ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "measure/clock.hpp"
#include "plan/kind.hpp"
#include "plan/plan.hpp"
#include "workload/tally.hpp"

namespace strakes {

struct PhaseOutcome {
    const Plan& plan;
    std::size_t index;  // index of the phase in the plan
    const Timeline& timeline;
    const Tally& tally;  // results of all ranks
    bool cancelled = false;
    Impact impact{};
};

// Returns a moment on the timeline in seconds since 1970, by comparing the timeline with the system clock now.
double unix_seconds(const Timeline& timeline, std::uint64_t moment);

// Returns all keys of a sample except type, version and id. All numbers are finite.
nlohmann::ordered_json sample_of(const PhaseOutcome& outcome);

}  // namespace strakes
