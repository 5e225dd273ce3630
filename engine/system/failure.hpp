// An error as a value: what, where, why, remedy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strakes {

struct Failure {
    // GCC warns about members that an initialiser omits and that have no default here.
    // NOLINTBEGIN(readability-redundant-member-init)
    std::string what = {};
    std::string path = {};       // path relative to the plan's directory; may be empty
    std::string operation = {};  // name of the system call; may be empty
    std::string why = {};
    std::string error_name = {};  // name of the error, such as ENOSPC; may be empty
    std::string remedy = {};
    std::optional<std::uint64_t> offset_bytes = {};
    // NOLINTEND(readability-redundant-member-init)

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.what, self.path, self.operation, self.why, self.error_name, self.remedy, self.offset_bytes);
    }
};

Failure call_failure(std::string_view operation, std::string path, int error);

// Return "ENOSPC" for ENOSPC, or "E123" for a number without a known name.
std::string errno_name(int error);

}  // namespace strakes
