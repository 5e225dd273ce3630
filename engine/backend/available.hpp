// Which of the backends this engine can use here, and why not the others.
#pragma once

#include <string>

#include "plan/plan.hpp"

namespace strakes {

struct Absence {
    std::string why;  // empty for a backend that is there
    const char* remedy = "";
};

// Built in, and taken by the kernel: tried once.
[[nodiscard]] Absence absence_of(Backend backend);

// Of those by a library over MPI; every executable has its own answer.
[[nodiscard]] Absence absence_of_library(Backend backend);

}  // namespace strakes
