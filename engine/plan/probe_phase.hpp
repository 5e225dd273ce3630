// Parameters of a probe: operations on a fixed schedule.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "backend/registry.hpp"
#include "plan/field.hpp"
#include "plan/stop.hpp"

namespace strakes {

enum class ProbeOperation : std::uint8_t { file_create, file_cycle, file_stat, file_read, file_fsync, write_fsync };

inline constexpr std::array kProbeOperations =
    std::to_array<std::pair<std::string_view, ProbeOperation>>({{"file-create", ProbeOperation::file_create},
                                                                {"file-cycle", ProbeOperation::file_cycle},
                                                                {"file-stat", ProbeOperation::file_stat},
                                                                {"file-read", ProbeOperation::file_read},
                                                                {"file-fsync", ProbeOperation::file_fsync},
                                                                {"write-fsync", ProbeOperation::write_fsync}});

// Every rank starts its operations on a fixed schedule. The ranks are spread evenly over the interval.
struct ProbePhase {
    std::string name;
    ProbeOperation operation{};
    Backend backend = Backend::posix;
    std::string files = "probe";
    double rate_per_s = 0;  // per rank
    double seconds = 0;
    std::uint64_t file_bytes = 0;
    bool log = false;
    Stop stop;  // always amount: all operations that are due within `seconds`

    static constexpr std::uint64_t rank_shift = 0;
    // Return the number of operations of one rank.
    [[nodiscard]] std::uint64_t operations() const noexcept {
        return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(rate_per_s * seconds));
    }
};

inline constexpr auto kProbeFields = [] {
    using enum Presence;
    using Phase = ProbePhase;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"operation", &Phase::operation, OneOf{kProbeOperations}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::probe}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"rate_per_s", &Phase::rate_per_s, Above0{1e6}, needed},
                      Field{"seconds", &Phase::seconds, Above0{kDay}, needed},
                      Field{"file_bytes", &Phase::file_bytes, Range{0, kMostCount}},
                      Field{"log", &Phase::log}};
}();

}  // namespace strakes
