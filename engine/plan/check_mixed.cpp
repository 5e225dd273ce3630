// Checks a mixed phase: every rank belongs to one part, and no part changes files that another part uses.
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "plan/phase_check.hpp"

namespace strakes {

namespace {

// Separate name spaces for file sets.
enum class Space : std::uint8_t { data, items, pools, probes };

struct Use {
    Space space;
    bool changes;
};

Use use_of(const Phase& part) {
    if (const auto* transfer = std::get_if<TransferPhase>(&part))
        return {Space::data, transfer->operation != TransferOperation::read};
    if (const auto* metadata = std::get_if<MetadataPhase>(&part))
        return {Space::items, !leaves_as_is(metadata->operation)};
    return {std::holds_alternative<ProbePhase>(part) ? Space::probes : Space::pools, true};
}

const std::string& files_of(const Phase& part) {
    static const std::string kNone;
    return std::visit(
        []<class Body>(const Body& body) -> const std::string& {
            if constexpr (std::is_same_v<Body, MixedPhase>)
                return kNone;
            else
                return body.files;
        },
        part);
}

}  // namespace

void check_mixed(const Plan& plan, std::size_t index) {
    const auto& mixed = std::get<MixedPhase>(plan.phases[index]);
    const std::uint64_t ranks = std::accumulate(mixed.part_ranks.begin(), mixed.part_ranks.end(), std::uint64_t{0});
    PhaseCheck(plan.key_of(index))
        .require(ranks == plan.ranks, "parts",
                 "have " + std::to_string(ranks) + " ranks together, the team has " + std::to_string(plan.ranks),
                 "Give every rank of the team to one part.");
    std::map<std::pair<Space, std::string>, bool> changed;
    for (std::size_t part = index + 1; part < plan.after(index); ++part) {
        const PhaseCheck check(plan.key_of(part));
        const Use use = use_of(plan.phases[part]);
        const auto [known, fresh] = changed.try_emplace({use.space, files_of(plan.phases[part])}, use.changes);
        check.require(fresh || (!use.changes && !known->second), "files",
                      "is the set of another part, too, and one of the two changes it", "Give it files of its own.");
        check.require(phase_stop(plan.phases[part]).rule != StopRule::wear_out, "stop.rule",
                      "wear-out is not for a part of a mixed phase: all ranks of the team agree",
                      "Use the rule stonewall.");
        const auto* transfer = std::get_if<TransferPhase>(&plan.phases[part]);
        check.require(transfer == nullptr || transfer->writers == 0, "writers", "is not for a part of a mixed phase",
                      "Leave it out.");
        check.require(!row_of(backend_of(plan.phases[part])).needs_processes, "backend",
                      "is not for a part of a mixed phase: it opens files with all ranks",
                      "Use another backend, or a phase of its own.");
    }
}

}  // namespace strakes
