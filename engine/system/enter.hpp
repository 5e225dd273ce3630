// Opening a directory by its name in another one without leaving it: no symbolic link, no ".." and no mount is crossed.
#pragma once

namespace strakes {

// The descriptor, or the negative error number: ELOOP or ENOTDIR for what is no directory, EXDEV for what is mounted
// there. A bind mount of the same file system is a mount, too, although its device number does not tell.
int enter_directory(int parent, const char* name) noexcept;

namespace detail {

// The same by openat(2) and the numbers of mounts, for systems without openat2(2).
int enter_by_mount_number(int parent, const char* name) noexcept;

}  // namespace detail

}  // namespace strakes
