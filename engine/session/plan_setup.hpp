// Prepares a plan. Checks memory first, because the OOM killer would end the run without a message.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "measure/counters.hpp"
#include "plan/object_reader.hpp"
#include "plan/parse.hpp"
#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "system/bytes.hpp"
#include "system/queries.hpp"
#include "team/team.hpp"
#include "workload/gathering.hpp"
#include "workspace/workspace.hpp"

namespace strakes {

class PlanSetup {
  public:
    using Fault = Workspaces::Fault;

    PlanSetup(const PlanRequest& request, Report& report, Team& team, Workspaces& workspaces)
        : request_(request), report_(report), team_(team), workspaces_(workspaces) {}

    // Called before ranks that are threads start.
    [[nodiscard]] std::optional<Fault> before_ranks() {
        if (team_.processes() != nullptr) return std::nullopt;
        if (auto fault = memory_fault()) return fault;
        return workspaces_.make(request_.prepared);
    }
    // Called by each rank. Return false in all processes if a process has a fault, which rank 0 has reported. Return
    // true immediately if ranks are threads.
    [[nodiscard]] bool among_processes(Team::Rank rank) {
        if (team_.processes() == nullptr) return true;
        std::optional<Fault> fault = machine_fault();
        if (!fault && team_.leads_node(rank)) fault = memory_fault();
        if (!agree(fault)) return false;
        if (rank == 0) fault = workspaces_.make(request_.prepared);
        if (!agree(fault)) return false;
        if (rank != 0) fault = workspaces_.join();
        if (agree(fault)) return true;
        if (rank != 0) workspaces_.close();
        team_.barrier();
        if (rank == 0 && end_) end_->cleaned = !workspaces_.remove();
        return false;
    }

    struct End {
        PlanStatus status;
        bool cleaned;
    };
    [[nodiscard]] const std::optional<End>& end() const noexcept { return end_; }

  private:
    static Workspace::Fault memory_lack(const char* what, const std::string& wanted, std::uint64_t available,
                                        const char* remedy, const char* key) {
        return {
            {.what = what,
             .why = wanted + " bytes; available: " + std::to_string(available) + " bytes, of which 80 % may be used",
             .remedy = remedy},
            key};
    }

    [[nodiscard]] std::optional<Fault> memory_fault() const {
        std::uint64_t largest = 0, staged = 0;
        std::map<std::string_view, std::uint64_t> sizes;  // sizes of shared files by name
        for (const Phase& phase : request_.plan.phases) {
            if (const auto* transfer = std::get_if<TransferPhase>(&phase)) {
                largest = std::max(largest, buffer_bytes_of(*transfer));
                if (transfer->operation == TransferOperation::write)
                    sizes[transfer->files] = transfer->bytes_per_rank() * request_.plan.ranks;
            } else if (const auto* stage = std::get_if<StagePhase>(&phase)) {
                if (stage->readers_per_node == 0)
                    largest = std::max(largest, stage->transfer_bytes);
                else
                    staged = std::max(staged, sizes[stage->files]);
            } else if (const auto* probe = std::get_if<ProbePhase>(&phase)) {
                largest = std::max(largest, probe->file_bytes);
            } else if (const auto* training = std::get_if<TrainingPhase>(&phase)) {
                largest = std::max(largest, std::max<std::uint64_t>(training->readers, 1) * buffer_bytes_of(*training));
            }
        }
        const Team::Rank ranks = team_.ranks_on_node();
        const std::uint64_t hog = request_.plan.memory_hog_bytes;
        const std::uint64_t available = read_counters().memory.available_bytes;
        if (available == 0) return std::nullopt;
        const std::uint64_t left = available - std::min(hog, available);
        if (hog > available / 10 * 8)
            return memory_lack("the memory to occupy is not available", std::to_string(hog), available,
                               "Use a smaller memory_hog_bytes.", "team.memory_hog_bytes");
        if (staged > left / 10 * 8)
            return memory_lack("the staged file does not fit into the memory of a node", std::to_string(staged), left,
                               "Use a smaller file, or readers_per_node 0.", "team.ranks");
        const Placement& placement = request_.plan.placement;
        if (placement.buffer_pages != Pages::normal) largest = in_pages(largest, page_bytes(placement.buffer_pages));
        if (placement.buffer_pages == Pages::huge) {
            const std::uint64_t free = free_huge_pages() * page_bytes(Pages::huge);
            if (largest <= free / ranks) return std::nullopt;
            return Workspace::Fault{
                {.what = "the buffers of all ranks do not fit into the huge pages that are free",
                 .why = std::to_string(ranks) + " ranks x " + std::to_string(largest) +
                        " bytes; free: " + std::to_string(free) + " bytes",
                 .remedy = "Reserve more of them as root (vm.nr_hugepages), or leave buffer_pages out."},
                "team.buffer_pages"};
        }
        if (largest > left / 10 * 8 / ranks) {
            return memory_lack("the buffers of all ranks do not fit into memory",
                               std::to_string(ranks) + " ranks x " + std::to_string(largest), left,
                               "Use a smaller transfer_bytes or queue_depth, or fewer ranks.", "team.ranks");
        }
        return std::nullopt;
    }
    // Check this node, which may lack resources that rank 0's node has.
    [[nodiscard]] std::optional<Fault> machine_fault() const {
        try {
            check_here(request_.plan);
            return std::nullopt;
        } catch (const Refusal& refusal) {
            return Workspace::Fault{{.what = refusal.what(), .why = kNodeLacks, .remedy = refusal.remedy()},
                                    refusal.key()};
        }
    }
    // Return true if no process has a fault. Otherwise rank 0 reports all faults.
    bool agree(const std::optional<Fault>& fault) {
        if (!team_.any(fault.has_value())) return true;
        Packer packer;
        if (fault) packer(fault->failure, fault->key, host_name());
        end_ = {.status = PlanStatus::refused, .cleaned = true};
        const std::vector<std::string> faults = team_.processes()->all(packer.take());
        for (Team::Rank rank = 0; rank < faults.size(); ++rank) {
            if (faults[rank].empty()) continue;
            Unpacker unpacker(faults[rank]);
            Failure failure;
            std::string key, host;
            unpacker(failure, key, host);
            if (key.empty()) end_->status = PlanStatus::failed;
            if (team_.first() == 0) report_.error(failure, {.rank = rank, .key = key, .host = host});
        }
        return false;
    }

    const PlanRequest& request_;
    Report& report_;
    Team& team_;
    Workspaces& workspaces_;
    std::optional<End> end_;
};

}  // namespace strakes
