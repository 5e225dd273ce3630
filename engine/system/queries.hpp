// Queries to the system: host name, processor time, path of a directory, holes of a file, project quota.
#pragma once

#include <cstdint>
#include <string>

#include "system/failure.hpp"

namespace strakes {

std::string host_name();

// Times of the calling thread. runnable_ns is 0 if the kernel does not count it (/proc/thread-self/schedstat).
struct ThreadTimes {
    std::uint64_t running_ns = 0;
    std::uint64_t runnable_ns = 0;  // ready to run, but waiting for a processor
};
[[nodiscard]] ThreadTimes thread_times();

// Return the current absolute path without symbolic links, or an empty string if the kernel reports none.
[[nodiscard]] std::string path_of(int directory);

// Return the number of bytes of [begin, end) that lie in holes or beyond the end of the file. File systems report holes
// in whole blocks. On an error of lseek(2), return the number counted so far.
[[nodiscard]] std::uint64_t hole_bytes(int descriptor, std::uint64_t begin, std::uint64_t end) noexcept;

// XFS returns ENOSPC when a project quota is exhausted. If new files in `directory` inherit a project, adds it to the
// reason and remedy of an ENOSPC failure.
void name_project(Failure& failure, int directory);

}  // namespace strakes
