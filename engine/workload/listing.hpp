// Traversal of directories (readdir, ls -l, find): one rank's part of a metadata phase.
#pragma once

#include <memory>

#include "workload/workload.hpp"

namespace strakes {

std::unique_ptr<Workload> make_listing(const PhaseSetting& setting, const Seat& seat);

}  // namespace strakes
