// Accepts transfer and metadata phases only, and only if no rank needs files of another directory.
#include "plan/several.hpp"

#include <type_traits>
#include <variant>

namespace strakes {

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
                    // A rank works on the files of rank + rank_shift, modulo the ranks, which must use the same
                    // directory.
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
