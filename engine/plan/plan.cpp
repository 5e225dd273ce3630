// Words for what a phase does.
#include "plan/plan.hpp"

namespace strakes {

std::string_view phase_kind(const Phase& phase) {
    if (const auto* transfer = std::get_if<TransferPhase>(&phase)) return transfer->stream ? "stream" : "transfer";
    return std::holds_alternative<SmallFilesPhase>(phase) ? "small-files" : "metadata";
}

std::string_view phase_operation(const Phase& phase) {
    if (const auto* transfer = std::get_if<TransferPhase>(&phase))
        return name_in(kTransferOperations, transfer->operation);
    if (const auto* small = std::get_if<SmallFilesPhase>(&phase)) return name_in(kSmallFilesModes, small->mode);
    return name_in(kMetadataOperations, std::get<MetadataPhase>(phase).operation);
}

}  // namespace strakes
