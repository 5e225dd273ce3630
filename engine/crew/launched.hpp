// How many tasks the launcher says it has started. A process that finds itself alone in spite of that was started by a
// launcher that its MPI does not understand: it would measure one rank and call it many.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace strakes {

struct Launched {
    std::uint32_t tasks = 0;  // 0: it does not say
    std::string by;           // what says so
};

// A variable of the environment; nullptr when there is none.
using Variables = std::function<const char*(const char*)>;

// `expected` is what our own launcher asked for; otherwise the launcher's variables count, the narrowest first.
Launched launched(std::optional<std::uint32_t> expected, const Variables& variable);

// Why the communicator is not the one that was launched; nothing when it is. One line and a remedy.
std::optional<std::string> size_mismatch(const Launched& launched, std::uint32_t size, std::string_view library,
                                         const Variables& variable);

// What srun should have been told with --mpi for that library, where a task finds itself alone.
std::string_view language_for(std::string_view library, const Variables& variable);

// Whether this is the task that speaks for all: without a communicator only the launcher's variables tell.
bool speaks_for_all(const Variables& variable);

// A whole number up to 2^31, and nothing else.
std::optional<std::uint32_t> count_from(std::string_view text);

}  // namespace strakes
