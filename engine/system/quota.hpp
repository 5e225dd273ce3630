// Quotas that are told as something else.
#pragma once

#include "system/failure.hpp"

namespace strakes {

// XFS tells the quota of a project that is used up as a full file system. Where new files of the directory belong to a
// project, a failure for want of space says so.
void name_project(Failure& failure, int directory);

}  // namespace strakes
