// Replaces shm_open(), shm_unlink() and shmget() of the C library for MPI libraries. MPICH derives names from the
// process id and the start time of mpiexec, which other users know, and opens a file of that name whoever owns it. So
// the files are in a directory of this user alone, whose name has the secret of this start of the engine
// (STRAKES_SHARED_NAMES): others cannot make the names that the libraries try next. Files of other users are refused.
#include <fcntl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// Return the private directory, or "" if nobody named one.
std::string directory() {
    const char* secret = std::getenv("STRAKES_SHARED_NAMES");  // NOLINT(concurrency-mt-unsafe): set by nobody
    return secret == nullptr || *secret == '\0' ? "" : std::string("/dev/shm/strakes") + secret;
}

std::string path_of(std::string_view name) {
    name.remove_prefix(name.starts_with('/') ? 1 : 0);
    const std::string place = directory();
    if (!place.empty()) (void)::mkdir(place.c_str(), S_IRWXU);  // another rank may have made it
    return (place.empty() ? "/dev/shm" : place) + "/" + std::string(name);
}

[[gnu::destructor]] void remove_directory() {  // The last rank of this node removes it.
    if (const std::string place = directory(); !place.empty()) (void)::rmdir(place.c_str());
}

}  // namespace

extern "C" int shm_open(const char* name, int flags, mode_t mode) {
    const int descriptor = ::open(path_of(name).c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode);
    struct stat status{};
    if (descriptor < 0 || (::fstat(descriptor, &status) == 0 && status.st_uid == ::geteuid())) return descriptor;
    ::close(descriptor);
    errno = EACCES;
    return -1;
}

extern "C" int shm_unlink(const char* name) { return ::unlink(path_of(name).c_str()); }

// UCX lets the group of the user write memory of System V, which needs no name: numbers are in /proc/sysvipc/shm.
extern "C" int shmget(key_t key, size_t size, int flags) {
    return static_cast<int>(::syscall(SYS_shmget, key, size, flags & ~(S_IRWXG | S_IRWXO)));
}
