// A descriptor table that is a thread's alone.
#pragma once

#include <sched.h>
#include <sys/stat.h>

#include <cstdlib>

namespace strakes {

// Of a shared one the kernel counts references on every call (25-30 % of create and open-close). Not where something is
// preloaded: it knows files by their numbers, which are to be those of one file in the whole process. Refused (a
// sandbox): slower, not wrong.
inline void take_own_table() noexcept {
    const char* preloaded = std::getenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe): set by nobody
    if (preloaded != nullptr && *preloaded != '\0') return;
    struct stat everywhere{};
    if (::stat("/etc/ld.so.preload", &everywhere) == 0 && everywhere.st_size > 0) return;
    static_cast<void>(::unshare(CLONE_FILES));
}

}  // namespace strakes
