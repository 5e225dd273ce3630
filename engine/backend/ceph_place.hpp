// The plan's directory inside a Ceph file system: looked at, made, emptied and removed through libcephfs.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/file.hpp"

namespace strakes {

class CephPlace {
  public:
    // What went wrong, if anything; `path` is where.
    struct Outcome {
        FileStep step;
        std::string path;
        bool marker = false;  // it is not there, or not a regular file
    };

    // Makes directory/id in a directory with the marker, or looks whether another process has. The ranks' clients then
    // stand in it (of_plan).
    [[nodiscard]] static Outcome make(const std::string& directory, const std::string& id, const char* marker);
    [[nodiscard]] static Outcome join(const std::string& directory, const std::string& id, const char* marker);
    [[nodiscard]] static const std::string& of_plan() noexcept;

    // Everything in it, by a client of its own; counts what is gone. What is left comes back.
    [[nodiscard]] static std::vector<std::string> empty(std::atomic<std::uint64_t>& removed);
    // The empty directory itself, unless that fails.
    [[nodiscard]] static FileStep remove();
};

}  // namespace strakes
