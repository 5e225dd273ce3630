// The prefix in a bucket that holds a plan's objects and a marker object.
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
    // Sets the prefix to NAME/ID/. NAME is the last component of `directory`, which strakes made and which no other run
    // has.
    static void choose(const std::string& directory, const std::string& id);
    // look() checks that the prefix is empty, make() writes the marker, join() checks that another process has written
    // it. They return the failure, if any.
    [[nodiscard]] static std::optional<Failure> look();
    [[nodiscard]] static std::optional<Failure> make();
    [[nodiscard]] static std::optional<Failure> join();

    [[nodiscard]] static const std::string& of_plan() noexcept;
    [[nodiscard]] static std::string marker();
    // Returns the text of the note that stays next to the plan's directory while there are objects: endpoint, bucket
    // and prefix for `strakes clean`, without credentials.
    [[nodiscard]] static std::string note();

    // Aborts unfinished uploads, removes all objects below the prefix and then the marker. Does nothing if the marker
    // is missing. Adds the number of removed objects to `removed` and returns the failure, if any.
    [[nodiscard]] static std::optional<Failure> empty(std::atomic<std::uint64_t>& removed);
};

}  // namespace strakes
