// Gives a thread its own descriptor table.
#pragma once

#include <sched.h>
#include <sys/stat.h>

#include <cstdlib>

namespace strakes {

// Give the calling thread its own descriptor table. With a shared table the kernel counts references to files in every
// call, which costs 25-30 % of create and open-close. Do nothing if a library is preloaded: it may track files by
// descriptor number, which must then be unique in the process. If unshare(2) is refused (in a sandbox), calls are
// slower.
inline void take_own_table() noexcept {
    const char* preloaded = std::getenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe): set by nobody
    if (preloaded != nullptr && *preloaded != '\0') return;
    struct stat everywhere{};
    if (::stat("/etc/ld.so.preload", &everywhere) == 0 && everywhere.st_size > 0) return;
    static_cast<void>(::unshare(CLONE_FILES));
}

}  // namespace strakes
