// Several phases at once: one rank's part of a mixed phase.
#pragma once

#include <memory>

#include "workload/workload.hpp"

namespace strakes {

std::unique_ptr<Workload> make_mixed(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
