// The plan as parsed and validated; schemas/plan.json says what every member means.
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
#include "plan/probe_phase.hpp"
#include "plan/small_files_phase.hpp"
#include "plan/stage_phase.hpp"
#include "plan/training_phase.hpp"
#include "plan/transfer_phase.hpp"
#include "system/placement.hpp"

namespace strakes {

// Several phases at once, each by ranks of its own; they begin together.
struct MixedPhase {
    std::string name;
    std::vector<std::uint32_t> part_ranks;  // of each part, in the order of the ranks
    Backend backend = Backend::posix;       // of its first part
    Stop stop;                              // that of every part, but for amount

    static constexpr std::uint64_t rank_shift = 0;
    [[nodiscard]] std::size_t parts() const noexcept { return part_ranks.size(); }
    [[nodiscard]] std::uint32_t first_rank_of(std::size_t part) const noexcept {
        return std::accumulate(part_ranks.begin(), part_ranks.begin() + static_cast<std::ptrdiff_t>(part), 0U);
    }
    // Of the ranks of the team, whose number is that of all parts together.
    [[nodiscard]] std::size_t part_of(std::uint32_t rank) const noexcept {
        std::size_t part = 0;
        for (; part + 1 < parts() && rank >= part_ranks[part]; ++part) rank -= part_ranks[part];
        return part;
    }
};

using Phase =
    std::variant<TransferPhase, MetadataPhase, SmallFilesPhase, ProbePhase, StagePhase, TrainingPhase, MixedPhase>;

inline constexpr std::array<std::pair<std::string_view, Pages>, 3> kPages{
    {{"normal", Pages::normal}, {"transparent", Pages::transparent}, {"huge", Pages::huge}}};

struct Plan {
    std::uint32_t seed = 0;
    std::uint64_t salt = 0;  // of the data: no part of the plan, but of the run and the visit
    std::uint32_t ranks = 1;
    std::optional<std::uint32_t> ranks_per_node;  // at most so many of one node
    std::uint64_t memory_hog_bytes = 0;           // held on every node while the plan runs
    Placement placement{};                        // of the ranks of every node
    std::vector<Phase> phases;                    // a mixed phase is followed by its parts

    // The index of the phase after the one at `index` and its parts.
    [[nodiscard]] std::size_t after(std::size_t index) const;
    // Of what a rank does in the phase at `index`: that phase, or one of its parts.
    [[nodiscard]] std::size_t of_rank(std::size_t index, std::uint32_t rank) const;
    [[nodiscard]] const Phase& phase_of(std::size_t index, std::uint32_t rank) const {
        return phases[of_rank(index, rank)];
    }
    // How many phases come before the one at `index`, parts not counted.
    [[nodiscard]] std::size_t number_of(std::size_t index) const;
    // The key of the phase or part at `index` in the plan's JSON.
    [[nodiscard]] std::string key_of(std::size_t index) const;
};

[[nodiscard]] inline const std::string& phase_name(const Phase& phase) {
    return std::visit([](const auto& body) -> const std::string& { return body.name; }, phase);
}
[[nodiscard]] inline const Stop& phase_stop(const Phase& phase) {
    return std::visit([](const auto& body) -> const Stop& { return body.stop; }, phase);
}
[[nodiscard]] std::string_view phase_kind(const Phase& phase);
// Whether calls of the phase wait until data are on the device.
[[nodiscard]] bool waits_for_device(const Phase& phase);
[[nodiscard]] std::string_view phase_operation(const Phase& phase);
[[nodiscard]] inline Backend backend_of(const Phase& phase) {
    return std::visit([](const auto& body) { return body.backend; }, phase);
}
[[nodiscard]] inline std::string_view phase_backend(const Phase& phase) { return row_of(backend_of(phase)).name; }
// The plan's directory is inside a file system that no kernel has mounted.
[[nodiscard]] inline bool unmounted(const Plan& plan) {
    return !plan.phases.empty() && row_of(backend_of(plan.phases.front())).unmounted;
}

// Some of its files are objects of a store.
[[nodiscard]] inline bool has_objects(const Plan& plan) {
    return std::ranges::any_of(plan.phases,
                               [](const Phase& phase) { return row_of(backend_of(phase)).format == Format::objects; });
}

}  // namespace strakes
