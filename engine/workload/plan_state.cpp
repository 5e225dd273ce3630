// Creates every set that a plan names, empty.
#include "workload/plan_state.hpp"

#include <algorithm>

namespace strakes {

namespace {

// Return whether the phase writes only whole words. A word that is written in part has no age.
bool writes_words(const TransferPhase& phase) {
    constexpr std::uint64_t kWord = 8;
    const auto odd = [](const SizeShare& size) { return size.bytes % kWord != 0; };
    return phase.operation == TransferOperation::read ||
           (phase.transfer_bytes % kWord == 0 && std::ranges::none_of(phase.write_sizes, odd));
}

}  // namespace

Ages DataSet::ages_of_all() const noexcept {
    Ages all{.oldest = UINT64_MAX, .newest = 0};
    for (std::size_t owner = 0; owner < ages.size(); ++owner) {
        if (done[owner] == 0) continue;
        all = {.oldest = std::min(all.oldest, ages[owner].oldest), .newest = std::max(all.newest, ages[owner].newest)};
    }
    return all.oldest > all.newest ? Ages{} : all;
}

PlanState::PlanState(const Plan& plan) {
    for (const Phase& phase : plan.phases) {
        if (const auto* transfer = std::get_if<TransferPhase>(&phase)) {
            DataSet fresh{.number = static_cast<std::uint32_t>(data.size()),
                          .done = std::vector<std::uint64_t>(plan.ranks),
                          .ages = std::vector<Ages>(plan.ranks)};
            data.try_emplace(transfer->files, std::move(fresh)).first->second.renews &= writes_words(*transfer);
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
