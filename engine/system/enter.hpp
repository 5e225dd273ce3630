// Opens a subdirectory without following symbolic links or "..", and without crossing a mount point.
#pragma once

namespace strakes {

// Return a descriptor or a negative errno: ELOOP or ENOTDIR if `name` is not a directory, EXDEV if it is a mount point.
// This includes bind mounts of the same file system, which have the same device number.
int enter_directory(int parent, const char* name) noexcept;

namespace detail {

// The same function with openat(2) and mount ids, for systems without openat2(2).
int enter_by_mount_number(int parent, const char* name) noexcept;

}  // namespace detail

}  // namespace strakes
