// Divides the removal of a plan's files among the ranks. A Ceph file system is emptied by rank 0 alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/requests.hpp"
#include "session/plan_watch.hpp"
#include "team/pace.hpp"
#include "team/team.hpp"
#include "workspace/tree_removal.hpp"
#include "workspace/workspace.hpp"
#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"
#endif
#ifdef STRAKES_S3
#include "backend/s3.hpp"
#endif

namespace strakes {

class PlanCleaning {
  public:
    using Rank = Team::Rank;

    PlanCleaning(const PlanRequest& request, Team& team, Workspaces& workspaces, PlanWatch& watch)
        : request_(request), team_(team), workspaces_(workspaces), watch_(watch) {}

    // Called by every rank after the last phase.
    void work(Rank rank) {
        if (!request_.keep) {
            watch_.progress(rank).at("cleaning up");
            if (rank == 0 && workspaces_.first().with_objects())
                objects_ = workspaces_.first().remove_objects(watch_.removed());
            if (workspaces_.first().inside_ceph()) {
                work_inside_ceph(rank);
            } else {
                sweep(rank);
            }
        }
#ifdef STRAKES_CEPHFS
        // The thread that connected must also disconnect.
        if (workspaces_.first().inside_ceph()) Ceph::disconnect(rank);
#endif
#ifdef STRAKES_S3
        if (workspaces_.first().with_objects()) S3::disconnect(rank);
#endif
    }

    struct Outcome {
        bool cleaned = false;  // whether no file is left
        std::vector<std::string> left;
        std::optional<Failure> failure = std::nullopt;  // why the first remaining path was not removed
    };
    // Return the result at rank 0, after all ranks have returned from work().
    [[nodiscard]] Outcome outcome() {
        if (request_.keep) return {};
        std::optional<Failure> swept = team_.processes() == nullptr ? workspaces_.remove() : swept_;
        if (!swept && !objects_) return {.cleaned = true, .left = {}};
        return what_is_left(std::move(swept));
    }

  private:
    using Removals = std::vector<std::unique_ptr<TreeRemoval>>;

    [[nodiscard]] Removals removals_of(TreeRemoval::Share share) {
        Removals removals;
        for (Rank first = 0; first < workspaces_.count(); ++first)
            removals.push_back(std::make_unique<TreeRemoval>(workspaces_.root(first), workspaces_.name(first),
                                                             watch_.removed(), share));
        return removals;
    }
    [[nodiscard]] Outcome what_is_left(std::optional<Failure> swept) const {
        Outcome outcome{.left = left_, .failure = objects_};
        for (const auto& removal : removals_) {
            for (std::string& path : removal->left())
                if (outcome.left.size() < TreeRemoval::kMostLeft) outcome.left.push_back(std::move(path));
            if (!outcome.failure) outcome.failure = removal->failure();
        }
        if (!outcome.failure) outcome.failure = std::move(swept);
        if (outcome.left.empty() && !objects_) outcome.left.push_back(request_.id);
        if (objects_) outcome.left.push_back(objects_->path + ": " + objects_->why);
        if (outcome.failure) {
            outcome.failure->what = "what the plan made could not be removed";
            if (outcome.failure->error_name == "EBUSY")
                outcome.failure->remedy = "Unmount what is mounted there, then remove what is left with strakes clean.";
        }
        return outcome;
    }
    void work_inside_ceph(Rank rank) {
#ifdef STRAKES_CEPHFS
        if (rank == 0) left_ = CephPlace::empty(watch_.removed());
        if (rank == 0 && team_.processes() != nullptr) swept_ = workspaces_.remove();
        team_.barrier();
#endif
    }
    // Ranks that are threads share one TreeRemoval. Each rank that is a process removes a separate share. Every rank
    // works in every directory. Rank 0 then removes what remains, such as the directories that several ranks worked in.
    void sweep(Rank rank) {
        const bool processes = team_.processes() != nullptr;
        if (processes)
            removals_ = removals_of({.number = team_.first(), .of = team_.size()});
        else if (rank == 0)
            removals_ = removals_of({.threads = team_.size()});
        team_.barrier();
        for (const auto& removal : removals_) removal->work(pace());
        if (processes && rank != 0) {
            removals_.clear();
            workspaces_.close();
        }
        team_.barrier();
        if (rank != 0) return;
        removals_ = removals_of({});
        for (const auto& removal : removals_) removal->work();
        if (processes) swept_ = workspaces_.remove();
    }
    // The removal also obeys the limits on load. After a cancellation or an error, the removal obeys the limits for 5 s
    // only, because a user is waiting.
    [[nodiscard]] Pace pace() const {
        constexpr Stop kPatience{.rule = StopRule::seconds, .seconds = 5};
        const Clock& clock = watch_.timeline().clock;
        const std::uint64_t start = clock.now();
        const bool halted = watch_.halt().load() != Halt::none;
        const std::uint64_t end = halted ? deadline_after(clock, start, kPatience) : UINT64_MAX;
        return {request_.impact, team_.size(), clock, nullptr, start, end};
    }

    const PlanRequest& request_;
    Team& team_;
    Workspaces& workspaces_;
    PlanWatch& watch_;
    Removals removals_;               // removals by directory
    std::vector<std::string> left_;   // paths left in a Ceph file system
    std::optional<Failure> objects_;  // why objects remain in a bucket
    std::optional<Failure> swept_;    // why a directory remains, if ranks are processes
};

}  // namespace strakes
