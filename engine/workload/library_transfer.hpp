// Transfers through MPI libraries: one rank's part of a transfer phase.
#pragma once

#include <memory>

#include "workload/workload.hpp"

namespace strakes {

std::unique_ptr<Workload> make_library_transfer(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
