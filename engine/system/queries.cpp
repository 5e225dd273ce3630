#include "system/queries.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <fstream>
#include <string>

namespace strakes {

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

ThreadTimes thread_times() {
    // The running time in schedstat is updated at clock ticks only, so it misses up to 10 ms.
    timespec running{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &running);
    ThreadTimes times{.running_ns = 1'000'000'000ULL * static_cast<std::uint64_t>(running.tv_sec) +
                                    static_cast<std::uint64_t>(running.tv_nsec)};
    std::uint64_t ticked_ns = 0;
    std::ifstream("/proc/thread-self/schedstat") >> ticked_ns >> times.runnable_ns;
    return times;
}

std::string path_of(int directory) {
    std::array<char, PATH_MAX> text{};
    const std::string link = "/proc/thread-self/fd/" + std::to_string(directory);
    const ssize_t size = ::readlink(link.c_str(), text.data(), text.size());
    if (size <= 0 || text.front() != '/') return {};
    return {text.data(), static_cast<std::size_t>(size)};
}

std::uint64_t hole_bytes(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept {
    std::uint64_t holes = 0;
    while (begin < end) {
        const off_t data = ::lseek(descriptor, static_cast<off_t>(begin), SEEK_DATA);
        if (data < 0 && errno != ENXIO) return holes;
        if (data < 0 || static_cast<std::uint64_t>(data) >= end) return holes + end - begin;
        holes += static_cast<std::uint64_t>(data) - begin;
        const off_t hole = ::lseek(descriptor, data, SEEK_HOLE);
        if (hole <= data) return holes;
        begin = static_cast<std::uint64_t>(hole);
    }
    return holes;
}

void name_project(Failure& failure, int directory) {
    if (failure.error_name != errno_name(ENOSPC)) return;
    fsxattr attributes{};
    if (::ioctl(directory, FS_IOC_FSGETXATTR, &attributes) != 0) return;
    if (attributes.fsx_projid == 0 || (attributes.fsx_xflags & FS_XFLAG_PROJINHERIT) == 0) return;
    const std::string project = "project " + std::to_string(attributes.fsx_projid);
    failure.why += "; the directory belongs to " + project + ", whose quota may be what is used up";
    failure.remedy = "Free space or inodes of " + project + " or raise its quota, or make the plan smaller.";
}

}  // namespace strakes
