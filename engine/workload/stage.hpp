// A file that all ranks need: one rank's part of a stage phase.
#pragma once

#include <memory>

#include "workload/workload.hpp"

namespace strakes {

std::unique_ptr<Workload> make_stage(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
