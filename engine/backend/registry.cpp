#include "backend/registry.hpp"

#ifdef STRAKES_CEPHFS
#include "backend/ceph_session.hpp"
#endif

#ifdef STRAKES_S3
#include "backend/curl_library.hpp"
#include "backend/s3_connection.hpp"
#endif

#ifdef STRAKES_URING
#include <cerrno>
#include <system_error>

#include "backend/uring_file.hpp"
#endif

namespace strakes {

namespace {

#ifdef STRAKES_URING
Absence try_uring() {
    Ring ring;
    const int error = ring.start(1);
    if (error == 0) return {};
    const char* remedy = "Use the backend posix.";
    if (error == EPERM) remedy = "Allow it: sysctl kernel.io_uring_disabled=0, and the seccomp profile of a container.";
    if (error == ENOSYS) remedy = "It needs a kernel with io_uring: 5.11 or newer.";
    if (error == ENOMEM) remedy = "Raise the limit of locked memory (ulimit -l).";
    return {"the kernel refuses io_uring: " + std::system_category().message(error), remedy};
}
#endif

}  // namespace

Absence absence_of_uring() {
#ifdef STRAKES_URING
    static const Absence kAnswer = try_uring();
    return kAnswer;
#else
    return {"this engine was built without liburing",
            "Install liburing-dev (RHEL: liburing-devel) and build strakes again."};
#endif
}

Absence absence_of_cephfs() {
#ifdef STRAKES_CEPHFS
    if (cephfs().trouble.empty()) return {};
    return {"libcephfs cannot be opened: " + cephfs().trouble, "Install libcephfs2 (Debian and RHEL)."};
#else
    return {"this engine was built without libcephfs",
            "Install libcephfs-dev (RHEL: libcephfs-devel) and build strakes again."};
#endif
}

Absence absence_of_s3() {
#ifdef STRAKES_S3
    if (!curl().trouble.empty()) {
        return {"libcurl cannot be opened: " + curl().trouble, "Install libcurl4 (RHEL: libcurl)."};
    }
    const std::string lacking = S3Access::lacking();
    const std::string wrong = lacking.empty() ? S3Access::wrong() : "";
    if (!wrong.empty()) return {wrong, "Set AWS_ENDPOINT_URL and STRAKES_S3_BUCKET for your object store."};
    if (lacking.empty()) return {};
    return {"the environment does not say which object store to use: " + lacking,
            "Set AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and STRAKES_S3_BUCKET (and AWS_REGION)."};
#else
    return {"this engine was built without libcurl",
            "Install libcurl4-openssl-dev (RHEL: libcurl-devel) and build strakes again."};
#endif
}

Absence absence_of(Backend backend) {
    const BackendRow& row = row_of(backend);
    if (row.needs_processes) return absence_of_library(backend);
    return row.absence != nullptr ? row.absence() : Absence{};
}

}  // namespace strakes
