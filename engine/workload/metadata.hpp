// Operations on files and directories: one rank's part of a metadata phase.
#pragma once

#include <memory>

#include "workload/workload.hpp"

namespace strakes {

std::unique_ptr<Workload> make_metadata(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
