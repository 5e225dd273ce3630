#include "plan/plan.hpp"

#include <type_traits>
#include <variant>

namespace strakes {

std::string_view phase_kind(const Phase& phase) {
    if (const auto* transfer = std::get_if<TransferPhase>(&phase)) return transfer->stream ? "stream" : "transfer";
    if (std::holds_alternative<ProbePhase>(phase)) return "probe";
    if (std::holds_alternative<StagePhase>(phase)) return "stage";
    if (std::holds_alternative<TrainingPhase>(phase)) return "training";
    if (std::holds_alternative<MixedPhase>(phase)) return "mixed";
    return std::holds_alternative<SmallFilesPhase>(phase) ? "small-files" : "metadata";
}

std::string_view phase_operation(const Phase& phase) {
    if (const auto* transfer = std::get_if<TransferPhase>(&phase))
        return name_in(kTransferOperations, transfer->operation);
    if (const auto* small = std::get_if<SmallFilesPhase>(&phase)) return name_in(kSmallFilesModes, small->mode);
    if (const auto* probe = std::get_if<ProbePhase>(&phase)) return name_in(kProbeOperations, probe->operation);
    if (const auto* training = std::get_if<TrainingPhase>(&phase))
        return name_in(kTrainingOperations, training->operation);
    if (std::holds_alternative<StagePhase>(phase)) return "read";
    if (std::holds_alternative<MixedPhase>(phase)) return "mixed";
    return name_in(kMetadataOperations, std::get<MetadataPhase>(phase).operation);
}

bool waits_for_device(const Phase& phase) {
    if (const auto* transfer = std::get_if<TransferPhase>(&phase))
        return transfer->sync == Sync::fsync || transfer->sync == Sync::fsync_each;
    if (const auto* metadata = std::get_if<MetadataPhase>(&phase)) return metadata->fsync;
    if (const auto* small = std::get_if<SmallFilesPhase>(&phase))
        return small->syncfs ||
               std::ranges::any_of(small->flow, [](const auto& step) { return step.call == FlowCall::fsync; });
    const auto* probe = std::get_if<ProbePhase>(&phase);
    return probe != nullptr &&
           (probe->operation == ProbeOperation::file_fsync || probe->operation == ProbeOperation::write_fsync);
}

std::size_t Plan::after(std::size_t index) const {
    const auto* mixed = std::get_if<MixedPhase>(&phases[index]);
    return index + 1 + (mixed != nullptr ? mixed->parts() : 0);
}

std::size_t Plan::of_rank(std::size_t index, std::uint32_t rank) const {
    const auto* mixed = std::get_if<MixedPhase>(&phases[index]);
    return mixed != nullptr ? index + 1 + mixed->part_of(rank) : index;
}

std::size_t Plan::number_of(std::size_t index) const {
    std::size_t number = 0;
    for (std::size_t at = 0; after(at) <= index; at = after(at)) ++number;
    return number;
}

std::string Plan::key_of(std::size_t index) const {
    std::size_t at = 0;
    while (after(at) <= index) at = after(at);
    const std::string key = "phases[" + std::to_string(number_of(index)) + "]";
    return at == index ? key : key + ".parts[" + std::to_string(index - at - 1) + "].phase";
}

namespace {

std::string lack_of(const TransferPhase& phase) {
    if (phase.layout != Layout::file_per_process) return "works on files that ranks have in common";
    if (phase.cache == Cache::drop_system) return "drops the system's caches, which needs one file system";
    return {};
}

std::string lack_of(const MetadataPhase& phase) {
    if (phase.share == Share::all) return "has all ranks work on the items of all";
    if (phase.find_all) return "searches the whole directory";
    if (is_listing(phase.operation) && phase.directory == Directory::shared)
        return "shares out the directories of a shared tree";
    return {};
}

}  // namespace

std::string against_several(const Plan& plan, std::uint32_t directories) {
    if (plan.ranks < directories)
        return "there are more directories (" + std::to_string(directories) + ") than ranks (" +
               std::to_string(plan.ranks) + ")";
    for (const Phase& phase : plan.phases) {
        const std::string lack = std::visit(
            [&](const auto& body) -> std::string {
                using Body = std::decay_t<decltype(body)>;
                if constexpr (std::is_same_v<Body, TransferPhase> || std::is_same_v<Body, MetadataPhase>) {
                    // Rank r works on files of rank (r + rank_shift) % ranks, which must use the same directory.
                    const bool stays = body.rank_shift % plan.ranks == 0 ||
                                       (plan.ranks % directories == 0 && body.rank_shift % directories == 0);
                    if (!stays) return "works on what ranks of another directory made";
                    if (row_of(body.backend).unmounted || row_of(body.backend).format == Format::objects)
                        return "has a backend that works in one directory only";
                    return lack_of(body);
                } else {
                    return "is of the kind " + std::string(phase_kind(phase));
                }
            },
            phase);
        if (!lack.empty()) return "phase '" + phase_name(phase) + "' " + lack;
    }
    return {};
}

}  // namespace strakes
