// An error as a value: what, where, why, remedy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strakes {

struct Failure {
    std::string what;
    std::string path;       // relative to the plan's directory; may be empty
    std::string operation;  // system call; may be empty
    std::string why;
    std::string error_name;  // such as ENOSPC; may be empty
    std::string remedy;
    std::optional<std::uint64_t> offset_bytes = std::nullopt;
};

// Describe a system call that failed with `error`.
Failure call_failure(std::string_view operation, std::string path, int error);

// Return "ENOSPC" for ENOSPC, or "E123" for a number without a known name.
std::string errno_name(int error);

}  // namespace strakes
