// A parent process that reports how its rank ended. A launcher ends all processes after the first loss and may then
// name any of them as the cause.
#pragma once

namespace strakes {

// Forks, and returns in the child. Must be called before MPI is initialised, while the process has one thread. The
// parent passes signals on, reports on standard error which signal ended the child, and exits with the child's status.
// If fork() fails, the process continues without a witness.
void stand_witness();

}  // namespace strakes
