// The number of tasks that the launcher reports. If MPI connects a different number, the launcher and the MPI library
// do not use the same protocol: every process would run alone as rank 0 and measure one rank instead of many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace strakes {

struct Launched {
    std::uint32_t tasks = 0;  // number of tasks; 0: unknown
    std::string by;           // the variable or option that contains this number
};

using Variables = std::function<const char*(const char*)>;

// Returns `expected`, the number given by --expect-ranks, or else the value of the first launcher variable that is set.
Launched launched(std::optional<std::uint32_t> expected, const Variables& variable);

// Returns a message with a remedy if the communicator's size is not the number of launched tasks, else nothing.
std::optional<std::string> size_mismatch(const Launched& launched, std::uint32_t size, std::string_view library,
                                         const Variables& variable);

// Returns the srun --mpi argument that fits the library, for tasks that MPI did not connect with others.
std::string_view language_for(std::string_view library, const Variables& variable);

// Returns whether this task should print the error for all tasks. Reads the launcher's rank variables, not MPI's rank.
bool speaks_for_all(const Variables& variable);

bool all_on_this_node(const Variables& variable);

// Parses a whole number up to 2^31. Returns nothing for any other text.
std::optional<std::uint32_t> count_from(std::string_view text);

}  // namespace strakes
