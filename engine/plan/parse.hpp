// Parses a plan from JSON: strict about its form (schemas/plan.json) and its consistency.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plan/plan.hpp"

namespace strakes {

// Throws Refusal. Its keys are paths such as phases[0].transfer_bytes.
Plan parse_plan(const nlohmann::json& document);

// Check what the schema cannot express: sizes that divide, sets that exist before they are used, settings that
// contradict each other. Throws Refusal. Called by parse_plan().
void check_plan(const Plan& plan);

// Check what depends on this node: processors and NUMA nodes, available backends, permissions. Throws Refusal, which
// names keys of the plan. Not called by parse_plan(), since every process checks its own node.
void check_here(const Plan& plan);
// Reason of the failure if check_here() refuses a plan.
inline constexpr const char* kNodeLacks = "this node cannot do what the plan asks for; others may";

}  // namespace strakes
