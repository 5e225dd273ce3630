// Words for what a phase does.
#include "plan/plan.hpp"

namespace strakes {

std::string_view phase_kind(const Phase& phase) {
    if (const auto* transfer = std::get_if<TransferPhase>(&phase)) return transfer->stream ? "stream" : "transfer";
    if (std::holds_alternative<ProbePhase>(phase)) return "probe";
    if (std::holds_alternative<StagePhase>(phase)) return "stage";
    return std::holds_alternative<SmallFilesPhase>(phase) ? "small-files" : "metadata";
}

std::string_view phase_operation(const Phase& phase) {
    if (const auto* transfer = std::get_if<TransferPhase>(&phase))
        return name_in(kTransferOperations, transfer->operation);
    if (const auto* small = std::get_if<SmallFilesPhase>(&phase)) return name_in(kSmallFilesModes, small->mode);
    if (const auto* probe = std::get_if<ProbePhase>(&phase)) return name_in(kProbeOperations, probe->operation);
    if (std::holds_alternative<StagePhase>(phase)) return "read";
    return name_in(kMetadataOperations, std::get<MetadataPhase>(phase).operation);
}

}  // namespace strakes
