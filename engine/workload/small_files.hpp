// The workload of small-files phases.
#pragma once

#include <memory>

#include "workload/workload.hpp"

namespace strakes {

std::unique_ptr<Workload> make_small_files(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
