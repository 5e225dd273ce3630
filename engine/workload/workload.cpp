// Registry of workloads by kind of phase.
#include "workload/workload.hpp"

#include <cerrno>

#include "workload/metadata.hpp"
#include "workload/mixed.hpp"
#include "workload/probe.hpp"
#include "workload/small_files.hpp"
#include "workload/stage.hpp"
#include "workload/training.hpp"
#include "workload/transfer.hpp"

namespace strakes {

namespace {

struct Maker {
    const PhaseSetting& setting;
    const Seat& seat;
    std::unique_ptr<Workload> operator()(const TransferPhase& /*phase*/) const { return make_transfer(setting, seat); }
    std::unique_ptr<Workload> operator()(const MetadataPhase& /*phase*/) const { return make_metadata(setting, seat); }
    std::unique_ptr<Workload> operator()(const SmallFilesPhase& /*phase*/) const {
        return make_small_files(setting, seat);
    }
    std::unique_ptr<Workload> operator()(const ProbePhase& /*phase*/) const { return make_probe(setting, seat); }
    std::unique_ptr<Workload> operator()(const StagePhase& /*phase*/) const { return make_stage(setting, seat); }
    std::unique_ptr<Workload> operator()(const TrainingPhase& /*phase*/) const { return make_training(setting, seat); }
    std::unique_ptr<Workload> operator()(const MixedPhase& /*phase*/) const { return make_mixed(setting, seat); }
};

}  // namespace

std::unique_ptr<Workload> make_workload(const PhaseSetting& setting, const Seat& seat) {
    return std::visit(Maker{setting, seat}, setting.phase());
}

std::optional<Failure> PhaseSetting::make(Buffer& buffer, std::uint64_t bytes) const {
    const Pages pages = plan.placement.buffer_pages;
    buffer = Buffer::of(bytes, pages);
    if (!buffer.empty()) return std::nullopt;
    Failure failure = call_failure("mmap", "", ENOMEM);
    failure.what = "there is no memory for a buffer of " + std::to_string(bytes) + " bytes";
    if (pages == Pages::normal) return failure;
    failure.what += ", of " + std::string(name_in(kPages, pages)) + " pages";
    failure.remedy = pages == Pages::huge ? "Reserve more huge pages (vm.nr_hugepages), or leave buffer_pages out."
                                          : "Free memory, or leave buffer_pages out.";
    return failure;
}

std::uint64_t deadline_after(const Clock& clock, std::uint64_t start, const Stop& stop) noexcept {
    if (stop.rule == StopRule::amount) return UINT64_MAX;
    constexpr std::uint64_t kMany = std::uint64_t{1} << 40U;
    const double ticks_per_second = static_cast<double>(kMany) / clock.to_seconds(kMany);
    return start + static_cast<std::uint64_t>(stop.seconds * ticks_per_second);
}

}  // namespace strakes
