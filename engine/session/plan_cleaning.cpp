// Everybody removes a share; libcephfs has a client of its own for it.
#include "session/plan_cleaning.hpp"

#include <cstdint>

#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"
#include "backend/ceph_place.hpp"
#endif
#ifdef STRAKES_S3
#include "backend/s3.hpp"
#endif

namespace strakes {

void PlanCleaning::work([[maybe_unused]] Rank rank) {
    if (!request_.keep) {
        watch_.progress(rank).at("cleaning up");
        if (rank == 0 && workspace_.with_objects()) objects_ = workspace_.remove_objects(watch_.removed());
        if (workspace_.inside_ceph()) {
            work_inside_ceph(rank);
        } else {
            sweep(rank);
        }
    }
#ifdef STRAKES_CEPHFS
    // The rank's client goes by the thread it came by.
    if (workspace_.inside_ceph()) Ceph::disconnect(rank);
#endif
#ifdef STRAKES_S3
    if (workspace_.with_objects()) S3::disconnect(rank);
#endif
}

// With nobody else in the way.
void PlanCleaning::work_inside_ceph([[maybe_unused]] Rank rank) {
#ifdef STRAKES_CEPHFS
    if (rank == 0) left_ = CephPlace::empty(watch_.removed());
    if (rank == 0 && team_.processes() != nullptr) swept_ = workspace_.remove();
    team_.barrier();
#endif
}

// Removing is load, too; but somebody waits for the end of a plan that was cancelled.
Pace PlanCleaning::pace() const {
    constexpr Stop kPatience{.rule = StopRule::seconds, .seconds = 5};
    const Clock& clock = watch_.timeline().clock;
    const std::uint64_t start = clock.now();
    const bool halted = watch_.halt().load() != Halt::none;
    const std::uint64_t end = halted ? deadline_after(clock, start, kPatience) : UINT64_MAX;
    return {request_.impact, team_.size(), clock, nullptr, start, end};
}

// Ranks that are threads share one removal, those that are processes take a share each; rank 0 looks at what is left at
// the end.
void PlanCleaning::sweep(Rank rank) {
    const bool processes = team_.processes() != nullptr;
    const auto removal_of = [this](TreeRemoval::Share share) {
        return std::make_unique<TreeRemoval>(workspace_.root(), workspace_.name(), watch_.removed(), share);
    };
    if (processes)
        removal_ = removal_of({.number = team_.first(), .of = team_.size()});
    else if (rank == 0)
        removal_ = removal_of({.threads = team_.size()});
    team_.barrier();
    removal_->work(pace());
    if (processes && rank != 0) {
        removal_.reset();
        workspace_.close();
    }
    team_.barrier();
    if (rank != 0) return;
    removal_ = removal_of({});
    removal_->work();
    if (processes) swept_ = workspace_.remove();
}

PlanCleaning::Outcome PlanCleaning::outcome() {
    if (request_.keep) return {};
    const bool swept = team_.processes() == nullptr ? workspace_.remove() : swept_;
    if (swept && !objects_) return {.cleaned = true, .left = {}};
    std::vector<std::string> left = removal_ ? removal_->left() : left_;
    if (left.empty() && !swept) left.push_back(request_.id);
    if (objects_) left.push_back(objects_->path + ": " + objects_->why);
    return {.cleaned = false, .left = std::move(left)};
}

}  // namespace strakes
