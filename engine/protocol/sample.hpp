// The sample of one phase from what its ranks did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "measure/second_rows.hpp"
#include "plan/impact.hpp"
#include "plan/plan.hpp"
#include "team/timeline.hpp"
#include "workload/tally.hpp"

namespace strakes {

// What all ranks together had done when the first of them finished.
struct FirstFinish {
    std::uint64_t at = 0;  // on the timeline
    Work work;
};

struct PhaseOutcome {
    const Plan& plan;
    std::size_t index;  // of the phase
    const Timeline& timeline;
    const Tally& tally;  // of all ranks
    FirstFinish first;
    const std::vector<SecondRow>& seconds;
    bool cancelled = false;
    Impact impact{};
};

// Seconds since 1970 of a moment on the timeline, from both clocks now.
double unix_seconds(const Timeline& timeline, std::uint64_t moment);

// All keys of a sample but type, version and id. All numbers are finite.
nlohmann::ordered_json sample_of(const PhaseOutcome& outcome);

}  // namespace strakes
