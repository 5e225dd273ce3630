// Descriptions of phases, and their positions in a plan.
#include "plan/plan.hpp"

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
        return std::ranges::any_of(small->flow, [](const auto& step) { return step.call == FlowCall::fsync; });
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

}  // namespace strakes
