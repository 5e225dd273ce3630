// How much load a plan may be to the file system, all ranks together.
#pragma once

namespace strakes {

struct Impact {
    double bytes_per_s = 0;       // 0: no limit
    double operations_per_s = 0;  // 0: no limit
    double share = 1;             // of the time in which a rank keeps the file system busy

    [[nodiscard]] bool limits() const noexcept { return bytes_per_s > 0 || operations_per_s > 0 || share < 1; }
};

}  // namespace strakes
