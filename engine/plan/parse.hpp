// From JSON to a plan: strict in form (schemas/plan.json) and in sense.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"

namespace strakes {

// Throws Refusal. The keys it names are paths such as phases[0].transfer_bytes.
Plan parse_plan(const nlohmann::json& document);

// What the schema cannot say: sizes that divide, sets that exist when they are used, settings that contradict each
// other. Throws Refusal. Part of parse_plan.
void check_plan(const Plan& plan);

// What only this machine can say: backends that are not there, and rights. Throws Refusal. Not part of parse_plan:
// every process asks it, and says what it finds in the plan's own words.
void check_here(const Plan& plan);
// Why a plan is refused for that.
inline constexpr const char* kNodeLacks = "this node cannot do what the plan asks for; others may";

}  // namespace strakes
