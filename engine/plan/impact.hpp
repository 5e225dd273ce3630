// Limits on the load that a plan puts on the file system, for all ranks together.
#pragma once

namespace strakes {

struct Impact {
    double bytes_per_s = 0;       // 0: no limit
    double operations_per_s = 0;  // 0: no limit
    double share = 1;             // highest fraction of the time that a rank keeps the file system busy

    [[nodiscard]] bool limits() const noexcept { return bytes_per_s > 0 || operations_per_s > 0 || share < 1; }
};

}  // namespace strakes
