// Parameters of a stage phase.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "backend/registry.hpp"
#include "plan/cache.hpp"
#include "plan/field.hpp"
#include "plan/stop.hpp"

namespace strakes {

// All ranks need the whole of a shared file.
struct StagePhase {
    std::string name;
    Backend backend = Backend::posix;
    std::string files = "data";
    std::uint64_t transfer_bytes = 0;
    std::uint32_t readers_per_node = 0;  // 0: all ranks
    bool broadcast = false;
    Cache cache = Cache::as_is;
    bool verify = false;
    Stop stop;  // always amount

    static constexpr std::uint64_t rank_shift = 0;
};

inline constexpr auto kStageFields = [] {
    using enum Presence;
    using Phase = StagePhase;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::stage}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"transfer_bytes", &Phase::transfer_bytes, Range{1, kMostBytes}, needed},
                      Field{"readers_per_node", &Phase::readers_per_node, Range{0, kMostRanks}},
                      Field{"broadcast", &Phase::broadcast},
                      Field{"cache", &Phase::cache, OneOf{kCaches}},
                      Field{"verify", &Phase::verify}};
}();

}  // namespace strakes
