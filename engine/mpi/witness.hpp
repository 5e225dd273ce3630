// Who saw a rank end. A launcher looks when the others of its processes are ending, too, which it ended itself, and may
// name any of them.
#pragma once

namespace strakes {

// Before MPI is initialised, while there is one thread. The caller comes back as a child of the process that it was;
// that one stays to pass signals on, to say on standard error which signal has ended the child, and to end as the child
// did. Where there can be no child, nothing is different.
void stand_witness();

}  // namespace strakes
