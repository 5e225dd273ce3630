// The plan's directory inside a Ceph file system: checked, created, emptied and removed through libcephfs.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/file.hpp"

namespace strakes {

class CephPlace {
  public:
    // The call that failed, if any, and the path it failed on.
    struct Outcome {
        FileStep step;
        std::string path;
        bool marker = false;  // the marker is missing or not a regular file
    };

    // make() creates directory/id, join() checks that another process has created it. Both require the marker in
    // `directory` and set of_plan(), the directory that the ranks' clients open.
    [[nodiscard]] static Outcome make(const std::string& directory, const std::string& id, const char* marker);
    [[nodiscard]] static Outcome join(const std::string& directory, const std::string& id, const char* marker);
    [[nodiscard]] static const std::string& of_plan() noexcept;

    // Removes everything below the plan's directory and adds the number of removed entries to `removed`. Returns the
    // paths of entries that could not be removed, from the plan's id on, at most 64.
    [[nodiscard]] static std::vector<std::string> empty(std::atomic<std::uint64_t>& removed);
    // Removes the empty directory itself. A missing directory is not an error.
    [[nodiscard]] static FileStep remove();
};

}  // namespace strakes
