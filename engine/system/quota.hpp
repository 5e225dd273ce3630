// Explains errors caused by project quotas.
#pragma once

#include "system/failure.hpp"

namespace strakes {

// XFS returns ENOSPC when a project quota is exhausted. If new files in `directory` inherit a project, adds it to the
// reason and remedy of an ENOSPC failure.
void name_project(Failure& failure, int directory);

}  // namespace strakes
