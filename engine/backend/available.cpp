// Backends that are not always there.
#include "backend/available.hpp"

#ifdef STRAKES_URING
#include <cerrno>
#include <system_error>

#include "backend/ring.hpp"
#endif

namespace strakes {

namespace {

Absence absence_of_uring() {
#ifdef STRAKES_URING
    Ring ring;
    const int error = ring.start(1);
    if (error == 0) return {};
    const char* remedy = "Use the backend posix.";
    if (error == EPERM) remedy = "Allow it: sysctl kernel.io_uring_disabled=0, and the seccomp profile of a container.";
    if (error == ENOSYS) remedy = "It needs a kernel with io_uring: 5.11 or newer.";
    if (error == ENOMEM) remedy = "Raise the limit of locked memory (ulimit -l).";
    return {"the kernel refuses io_uring: " + std::system_category().message(error), remedy};
#else
    return {"this engine was built without liburing",
            "Install liburing-dev (RHEL: liburing-devel) and build strakes again."};
#endif
}

Absence absence_of_cephfs() {
#ifdef STRAKES_CEPHFS
    return {};
#else
    return {"this engine was built without libcephfs",
            "Install libcephfs-dev (RHEL: libcephfs-devel) and build strakes again."};
#endif
}

}  // namespace

Absence absence_of(Backend backend) {
    if (by_library(backend)) return absence_of_library(backend);
    if (backend == Backend::cephfs) return absence_of_cephfs();
    if (backend != Backend::uring) return {};
    static const Absence uring = absence_of_uring();
    return uring;
}

}  // namespace strakes
