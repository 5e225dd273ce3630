// The plan as parsed and validated. schemas/plan.json documents every member.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "plan/metadata_phase.hpp"
#include "plan/other_phases.hpp"
#include "plan/transfer_phase.hpp"
#include "system/placement.hpp"

namespace strakes {

// Several phases that start together and run at the same time, each on separate ranks.
struct MixedPhase {
    std::string name;
    std::vector<std::uint32_t> part_ranks;  // number of ranks of each part, in rank order
    Backend backend = Backend::posix;       // backend of the first part
    Stop stop;                              // stop rule of every part, unless the rule is amount

    static constexpr std::uint64_t rank_shift = 0;
    [[nodiscard]] std::size_t parts() const noexcept { return part_ranks.size(); }
    [[nodiscard]] std::uint32_t first_rank_of(std::size_t part) const noexcept {
        return std::accumulate(part_ranks.begin(), part_ranks.begin() + static_cast<std::ptrdiff_t>(part), 0U);
    }
    // Return the part to which a rank belongs. The parts together have all ranks of the team.
    [[nodiscard]] std::size_t part_of(std::uint32_t rank) const noexcept {
        std::size_t part = 0;
        for (; part + 1 < parts() && rank >= part_ranks[part]; ++part) rank -= part_ranks[part];
        return part;
    }
};

using Phase =
    std::variant<TransferPhase, MetadataPhase, SmallFilesPhase, ProbePhase, StagePhase, TrainingPhase, MixedPhase>;

inline constexpr auto kPages = names_of<Pages>("normal", "transparent", "huge");

struct Plan {
    std::uint32_t seed = 0;
    std::uint64_t salt = 0;  // makes the data unique; derived from directory and request instead of the plan
    std::uint32_t ranks = 1;
    std::optional<std::uint32_t> ranks_per_node;  // maximum number of ranks on a node
    std::uint64_t memory_hog_bytes = 0;           // memory to occupy on every node while the plan runs
    Placement placement{};
    std::vector<Phase> phases;  // a mixed phase is followed by its parts

    // Return the index of the next phase, after the phase at `index` and its parts.
    [[nodiscard]] std::size_t after(std::size_t index) const;
    // Return the index of the phase that a rank executes: the phase at `index`, or a part of this phase.
    [[nodiscard]] std::size_t of_rank(std::size_t index, std::uint32_t rank) const;
    [[nodiscard]] const Phase& phase_of(std::size_t index, std::uint32_t rank) const {
        return phases[of_rank(index, rank)];
    }
    // Return the number of phases before the phase at `index`, without counting parts.
    [[nodiscard]] std::size_t number_of(std::size_t index) const;
    // Return the path of the phase or part at `index` in the plan's JSON.
    [[nodiscard]] std::string key_of(std::size_t index) const;
};

[[nodiscard]] inline const std::string& phase_name(const Phase& phase) {
    return std::visit([](const auto& body) -> const std::string& { return body.name; }, phase);
}
[[nodiscard]] inline const Stop& phase_stop(const Phase& phase) {
    return std::visit([](const auto& body) -> const Stop& { return body.stop; }, phase);
}
[[nodiscard]] std::string_view phase_kind(const Phase& phase);
[[nodiscard]] bool waits_for_device(const Phase& phase);
[[nodiscard]] std::string_view phase_operation(const Phase& phase);
[[nodiscard]] inline Backend backend_of(const Phase& phase) {
    return std::visit([](const auto& body) { return body.backend; }, phase);
}
[[nodiscard]] inline std::string_view phase_backend(const Phase& phase) { return row_of(backend_of(phase)).name; }
[[nodiscard]] inline bool unmounted(const Plan& plan) {
    return !plan.phases.empty() && row_of(backend_of(plan.phases.front())).unmounted;
}

[[nodiscard]] inline bool has_objects(const Plan& plan) {
    return std::ranges::any_of(plan.phases,
                               [](const Phase& phase) { return row_of(backend_of(phase)).format == Format::objects; });
}

// Return why the plan cannot run in several directories, or an empty string.
[[nodiscard]] std::string against_several(const Plan& plan, std::uint32_t directories);

}  // namespace strakes
