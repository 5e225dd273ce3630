#include "system/failure.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace strakes {

namespace {

struct Known {
    int error;
    std::string_view name;
    std::string_view remedy;
};

constexpr std::string_view kAskAdministrator = "Check the file system and its servers, then run again.";
constexpr std::string_view kPermission = "Use a directory that this user can write to.";

constexpr std::array kKnown = std::to_array<Known>({
    {EPERM, "EPERM", kPermission},
    {ENOENT, "ENOENT", "Something else removed files of this run; keep other programs out of its directory."},
    {EIO, "EIO", kAskAdministrator},
    {ENXIO, "ENXIO", kAskAdministrator},
    {EBADF, "EBADF",
     "Something closes this run's files, or a preloaded library has descriptors of its own: use the backend posix."},
    {EAGAIN, "EAGAIN", kAskAdministrator},
    {ENOMEM, "ENOMEM", "Use a smaller transfer size or fewer ranks."},
    {EACCES, "EACCES", kPermission},
    {EBUSY, "EBUSY", ""},
    {EEXIST, "EEXIST", "Something else made files in this run's directory; keep other programs out of it."},
    {EXDEV, "EXDEV", "Do not mount anything inside the run's directory."},
    {ENODEV, "ENODEV", ""},
    {ENOTDIR, "ENOTDIR", "Something else changed this run's directory; keep other programs out of it."},
    {EISDIR, "EISDIR", "Something else changed this run's directory; keep other programs out of it."},
    {EINVAL, "EINVAL", ""},
    {ENFILE, "ENFILE", "Raise the system's limit of open files (fs.file-max)."},
    {EMFILE, "EMFILE", "Raise the limit of open files (ulimit -n) or use fewer directories (branch, depth)."},
    {EFBIG, "EFBIG", "Use smaller files, or raise the limit of file sizes (ulimit -f)."},
    {ENOSPC, "ENOSPC", "Free space or inodes, or make the plan smaller."},
    {EROFS, "EROFS", "Mount the file system writable."},
    {EMLINK, "EMLINK", "Use fewer directories in one directory."},
    {EPIPE, "EPIPE", ""},
    {ENAMETOOLONG, "ENAMETOOLONG", ""},
    {ENOLCK, "ENOLCK", kAskAdministrator},
    {ENOSYS, "ENOSYS", ""},
    {ENOTEMPTY, "ENOTEMPTY", "Something else made files in this run's directory; keep other programs out of it."},
    {ELOOP, "ELOOP", "Something put a symbolic link into this run's directory; strakes follows none."},
    {ENODATA, "ENODATA", "Something else changed this run's files; keep other programs out of its directory."},
    {EOVERFLOW, "EOVERFLOW", ""},
    {EOPNOTSUPP, "EOPNOTSUPP", "This file system does not support the call; leave the setting out."},
    {ENETDOWN, "ENETDOWN", kAskAdministrator},
    {ENETUNREACH, "ENETUNREACH", kAskAdministrator},
    {ECONNABORTED, "ECONNABORTED", kAskAdministrator},
    {ECONNRESET, "ECONNRESET", kAskAdministrator},
    {ENOTCONN, "ENOTCONN", kAskAdministrator},
    {ESHUTDOWN, "ESHUTDOWN", kAskAdministrator},
    {ETIMEDOUT, "ETIMEDOUT", kAskAdministrator},
    {ECONNREFUSED, "ECONNREFUSED", kAskAdministrator},
    {EHOSTDOWN, "EHOSTDOWN", kAskAdministrator},
    {EHOSTUNREACH, "EHOSTUNREACH", kAskAdministrator},
    {ESTALE, "ESTALE", "The server no longer knows the file. Check the server, remount if needed, then run again."},
    {EUCLEAN, "EUCLEAN", "The file system is damaged; check it before you do anything else."},
    {EREMOTEIO, "EREMOTEIO", kAskAdministrator},
    {EDQUOT, "EDQUOT", "The quota is used up: free space, raise it, or make the plan smaller."},
});

const Known* find(int error) noexcept {
    const auto* found = std::ranges::find(kKnown, error, &Known::error);
    return found == kKnown.end() ? nullptr : found;
}

}  // namespace

std::string errno_name(int error) {
    if (const Known* known = find(error)) return std::string(known->name);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 32)
    if (const char* name = strerrorname_np(error)) return name;
#endif
    return "E" + std::to_string(error);
}

Failure call_failure(std::string_view operation, std::string path, int error) {
    const Known* known = find(error);
    std::string_view remedy = known != nullptr ? known->remedy : "";
    if (error == EAGAIN && operation == "pthread_create")
        remedy = "Use fewer ranks or raise the limit of processes (ulimit -u).";
    if (error == EINVAL && operation == "poll") remedy = find(EMFILE)->remedy;
    return {.what = std::string(operation) + " failed",
            .path = std::move(path),
            .operation = std::string(operation),
            .why = std::system_category().message(error),
            .error_name = errno_name(error),
            .remedy = std::string(remedy)};
}

}  // namespace strakes
