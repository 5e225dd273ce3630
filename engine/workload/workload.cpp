#include "workload/workload.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "workload/plan_state.hpp"
#include "workload/transfer_loop.hpp"

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

std::string hexadecimal(std::byte value) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto number = std::to_integer<unsigned>(value);
    return {'0', 'x', kDigits[number / 16], kDigits[number % 16]};
}

// Return whether the phase writes only whole words. A word that is written in part has no age.
bool writes_words(const TransferPhase& phase) {
    constexpr std::uint64_t kWord = 8;
    const auto odd = [](const SizeShare& size) { return size.bytes % kWord != 0; };
    return phase.operation == TransferOperation::read ||
           (phase.transfer_bytes % kWord == 0 && std::ranges::none_of(phase.write_sizes, odd));
}

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

Failure describe(const LoopEnd& end, std::string path) {
    const std::string_view call = end.reading ? "read" : "write";
    if (end.call != nullptr) return call_failure(end.call, std::move(path), end.error);
    Failure failure;
    if (end.mismatch) {
        failure.what = "the data read are not the data written";
        failure.why =
            "expected byte " + hexadecimal(end.mismatch->expected) + ", found " + hexadecimal(end.mismatch->found);
        failure.remedy =
            "Treat this file system as corrupting data until the cause is known; repeat with direct to leave the page "
            "cache out.";
        failure.offset_bytes = end.mismatch->offset_bytes;
    } else if (end.error == LoopEnd::kEndOfFile) {
        failure.what = std::string(call) + " moved nothing";
        failure.why = end.reading ? "the file ends before the data that were written"
                                  : "the file system accepted no byte and gave no reason";
        failure.remedy = "Make sure that nothing else changes the files of this run.";
        failure.offset_bytes = end.offset;
    } else {
        failure = call_failure(call, "", end.error);
        if (end.error == EINVAL)
            failure.remedy =
                "With direct, use a transfer_bytes that is a multiple of the device's block, such as 4096.";
        failure.offset_bytes = end.offset;
    }
    failure.path = std::move(path);
    failure.operation = call;
    return failure;
}

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
