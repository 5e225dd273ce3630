// Reads the project id that files inherit from their directory.
#include "system/quota.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <string>

namespace strakes {

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
