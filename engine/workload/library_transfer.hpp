// Moving data by a library over MPI.
#pragma once

#include <memory>

#include "workload/workload.hpp"

namespace strakes {

std::unique_ptr<Workload> make_library_transfer(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
