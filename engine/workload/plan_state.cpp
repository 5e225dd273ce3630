// Every set a plan names, empty.
#include "workload/plan_state.hpp"

namespace strakes {

PlanState::PlanState(const Plan& plan) {
    for (const Phase& phase : plan.phases) {
        if (const auto* transfer = std::get_if<TransferPhase>(&phase)) {
            DataSet fresh{.number = static_cast<std::uint32_t>(data.size()),
                          .done = std::vector<std::uint64_t>(plan.ranks)};
            data.try_emplace(transfer->files, std::move(fresh));
        } else if (const auto* small = std::get_if<SmallFilesPhase>(&phase)) {
            const Pool empty{.first = small->first_item, .next = small->first_item, .files = {}};
            pools.try_emplace(small->files, PoolsOfSet{.number = static_cast<std::uint32_t>(pools.size()),
                                                       .pools = std::vector<Pool>(plan.ranks, empty)});
        } else if (const auto* training = std::get_if<TrainingPhase>(&phase)) {
            samples.try_emplace(training->files, static_cast<std::uint32_t>(samples.size()));
        } else if (const auto* metadata = std::get_if<MetadataPhase>(&phase)) {
            auto& sets = on_directories(metadata->operation) ? directories : files;
            sets.try_emplace(metadata->files, plan.ranks);
        }
    }
}

}  // namespace strakes
