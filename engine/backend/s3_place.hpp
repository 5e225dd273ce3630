// The part of a bucket that a plan's objects are in: one prefix, marked by an object of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "system/failure.hpp"

namespace strakes {

class S3Place {
  public:
    // The prefix DIRECTORY/ID/: of the path of the directory that strakes made the name, which no other run has.
    static void choose(const std::string& directory, const std::string& id);
    // Looks that there is nothing; marks it; or looks whether another process has. What went wrong comes back.
    [[nodiscard]] static std::optional<Failure> look();
    [[nodiscard]] static std::optional<Failure> make();
    [[nodiscard]] static std::optional<Failure> join();

    [[nodiscard]] static const std::string& of_plan() noexcept;
    [[nodiscard]] static std::string marker();
    // What is in the note that stands beside the plan's directory as long as there are objects: all that `strakes
    // clean` must know, and no key.
    [[nodiscard]] static std::string note();

    // Everything below the prefix, uploads that were not ended, and at last the marker. Nothing is touched where there
    // is no marker. Counts what is gone; what went wrong comes back.
    [[nodiscard]] static std::optional<Failure> empty(std::atomic<std::uint64_t>& removed);
};

}  // namespace strakes
