// Operations on a fixed schedule: one rank's part of a probe phase.
#pragma once

#include <memory>

#include "workload/workload.hpp"

namespace strakes {

std::unique_ptr<Workload> make_probe(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
