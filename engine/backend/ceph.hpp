// Calls of libcephfs with the signatures of backend/posix.hpp. Nothing is mounted: every rank is a separate client with
// one session.
//
// A descriptor here combines the number of a session, in a table of the process, with a descriptor of that session. The
// thread that begins a session also uses and ends it, because the threads of libcephfs share that thread's table of
// kernel descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "backend/file.hpp"
#include "backend/posix.hpp"
#include "system/descriptor.hpp"

namespace strakes {

struct Ceph {
    using Opened = Posix::Opened;
    using Moved = FileMove;
    static constexpr bool kKernelFiles = false;
    static constexpr const char *kSynchroniseCall = "ceph_fsync", *kCloseCall = "ceph_close";

    static int close(int descriptor) noexcept;
    using Handle = Owned<&Ceph::close>;  // an open file or directory

    // Sessions in one process.
    static constexpr std::uint32_t kMostSessions = 4096;

    // Connects the rank's client and opens the plan's directory. Does nothing if the rank is connected; fails with
    // EMFILE if another rank uses its entry of the table.
    static FileStep connect(std::uint32_t rank);
    static void disconnect(std::uint32_t rank) noexcept;
    // Returns the descriptor of the plan's directory in the rank's session.
    static int root(int /*of_the_process*/, std::uint32_t rank) noexcept;

    static Opened open(int directory, const char* name, int flags) noexcept;
    static Opened enter(int directory, const char* name) noexcept {
        return open(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    }
    static Moved read_at(int descriptor, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept;
    static Moved write_at(int descriptor, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept;
    static int synchronise(int descriptor) noexcept;
    static int make_node(int /*directory*/, const char* /*name*/) noexcept;  // ENOSYS: libcephfs has no mknodat
    static int make_directory(int directory, const char* name) noexcept;
    static int status(int directory, const char* name) noexcept;
    static int rename(int directory, const char* from, const char* to) noexcept;
    static int remove_file(int directory, const char* name) noexcept;
    static int remove_directory(int directory, const char* name) noexcept;
};

}  // namespace strakes
