// Calls of libcephfs with the signatures of backend/posix.hpp. Nothing is mounted: every rank is a separate client with
// one session.
//
// A descriptor contains the index of a session in the process's table, and a descriptor of libcephfs in this session.
// Only the thread that begins a session may use and end the session: ranks' threads have separate tables of kernel
// descriptors, and the threads of libcephfs share the table of the thread that started them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

    static constexpr std::uint32_t kMostSessions = Sessions<int>::kMost;

    // Connects the rank's client and opens the plan's directory. Does nothing if the rank is connected. Fails with
    // EMFILE if another rank uses the rank's entry in the session table.
    static FileStep connect(std::uint32_t rank);
    static void disconnect(std::uint32_t rank) noexcept;
    static int root(int /*of_the_process*/, std::uint32_t rank) noexcept;

    static Opened open(int directory, const char* name, int flags) noexcept;
    static Opened enter(int directory, const char* name) noexcept {
        return open(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    }
    static Moved read_at(int descriptor, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept;
    static Moved write_at(int descriptor, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept;
    static int synchronise(int descriptor) noexcept;
    static int make_node(int /*directory*/, const char* /*name*/) noexcept;  // ENOSYS: libcephfs has no mknodat()
    static int make_directory(int directory, const char* name) noexcept;
    static int status(int directory, const char* name) noexcept;
    static int rename(int directory, const char* from, const char* to) noexcept;
    static int remove_file(int directory, const char* name) noexcept;
    static int remove_directory(int directory, const char* name) noexcept;
};

// The plan's directory inside a Ceph file system: checked, created, emptied and removed through libcephfs.
class CephPlace {
  public:
    // The call that failed, if any, and the path on which the call failed.
    struct Outcome {
        FileStep step;
        std::string path;
        bool marker = false;  // the marker is missing or not a regular file
    };

    // make() creates directory/id; join() checks that another process has created directory/id. Both functions require
    // the marker in `directory`, whose inode is `inode` (0: any), and choose the directory that the ranks' clients
    // open.
    [[nodiscard]] static Outcome make(const std::string& directory, const std::string& id, const char* marker,
                                      std::uint64_t inode);
    [[nodiscard]] static Outcome join(const std::string& directory, const std::string& id, const char* marker,
                                      std::uint64_t inode);

    // Removes everything below the plan's directory and adds the number of removed entries to `removed`. Returns at
    // most 64 paths of entries that could not be removed, each beginning with the plan's id.
    [[nodiscard]] static std::vector<std::string> empty(std::atomic<std::uint64_t>& removed);
    // Removes the plan's directory, which must be empty. A missing directory is not an error.
    [[nodiscard]] static FileStep remove();
};

}  // namespace strakes
