// Samples are generated, or read in an epoch: one rank's part of a training phase.
#pragma once

#include <memory>

#include "workload/workload.hpp"

namespace strakes {

std::unique_ptr<Workload> make_training(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
