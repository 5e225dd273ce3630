// Checks small-files, training and mixed phases.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "plan/parse.hpp"

namespace strakes {

namespace {

using enum SmallFilesMode;

std::int64_t count(const std::vector<FlowOperation>& flow, FlowCall call) {
    return std::ranges::count(flow, call, &FlowOperation::call);
}

// Check that at most one file is open at a time, and no file after the last call, so that the flow can be repeated.
void check_flow(const SmallFilesPhase& phase, const PhaseCheck& check) {
    bool open = false;
    for (std::size_t i = 0; i < phase.flow.size(); ++i) {
        const FlowOperation& operation = phase.flow[i];
        const std::string path = "flow[" + std::to_string(i) + "].";
        const bool opens = operation.call == FlowCall::create || operation.call == FlowCall::open;
        const bool anywhere = operation.call == FlowCall::stat;
        if (opens || operation.call == FlowCall::remove)
            check.require(!open, path + "op", "comes while a file is open", "Close the file before it.");
        else if (!anywhere)
            check.require(open, path + "op", "comes while no file is open", "Put create or open before it.");
        const bool moves =
            operation.call == FlowCall::write || operation.call == FlowCall::append || operation.call == FlowCall::read;
        check.only(moves || operation.bytes == 0, path + "bytes", "write, append and read");
        check.only(moves || operation.unit_bytes == 0, path + "unit_bytes", "write, append and read");
        open = opens || (open && operation.call != FlowCall::close);
    }
    check.require(!open, "flow", "leaves a file open", "Put close at its end.");
    const std::int64_t created = count(phase.flow, FlowCall::create);
    const std::int64_t removed = count(phase.flow, FlowCall::remove);
    check.require(removed <= created, "flow", "deletes more files than it creates", "Add as many create.");
    check.require(phase.stop.rule != StopRule::seconds || removed == created, "flow",
                  "creates more files than it deletes, without an end",
                  "Delete as many, or use the rule amount or stonewall.");
}

void check_same_pool(const SmallFilesPhase& phase, const SmallFilesPhase& first, const PhaseCheck& check) {
    constexpr const char* kFault = "differs from the earlier phases on the same files";
    constexpr const char* kRemedy = "Use the same value, or another name in files.";
    check.require(phase.subdirectories == first.subdirectories, "subdirectories", kFault, kRemedy);
    check.require(phase.size_low_bytes == first.size_low_bytes, "size_low_bytes", kFault, kRemedy);
    check.require(phase.size_high_bytes == first.size_high_bytes, "size_high_bytes", kFault, kRemedy);
    check.require(phase.first_item == first.first_item, "first_item", kFault, kRemedy);
}

// Refuse keys that only the operation `train` uses, unless the keys have their default values.
void check_is_usual(const TrainingPhase& phase, const PhaseCheck& check) {
    const TrainingPhase usual{};
    const auto same = [&](auto TrainingPhase::* member, const char* key) {
        check.only(phase.*member == usual.*member, key, "the operation train");
    };
    same(&TrainingPhase::batch_samples, "batch_samples");
    same(&TrainingPhase::readers, "readers");
    same(&TrainingPhase::prefetch_batches, "prefetch_batches");
    same(&TrainingPhase::compute_ns, "compute_ns");
    same(&TrainingPhase::compute_stdev_ns, "compute_stdev_ns");
    same(&TrainingPhase::steps, "steps");
    same(&TrainingPhase::shuffle, "shuffle");
}

enum class Space : std::uint8_t { data, items, pools, probes };

struct Use {
    Space space;
    bool changes;
};

Use use_of(const Phase& part) {
    if (const auto* transfer = std::get_if<TransferPhase>(&part))
        return {Space::data, transfer->operation != TransferOperation::read};
    if (const auto* metadata = std::get_if<MetadataPhase>(&part))
        return {Space::items, !leaves_as_is(metadata->operation)};
    return {std::holds_alternative<ProbePhase>(part) ? Space::probes : Space::pools, true};
}

const std::string& files_of(const Phase& part) {
    static const std::string kNone;
    return std::visit(
        []<class Body>(const Body& body) -> const std::string& {
            if constexpr (std::is_same_v<Body, MixedPhase>)
                return kNone;
            else
                return body.files;
        },
        part);
}

}  // namespace

void check_small_files(const SmallFilesPhase& phase, std::map<std::string, PoolSet>& sets, const PhaseCheck& check) {
    const bool repeats = phase.mode == transactions || phase.mode == flow;
    check.require(phase.size_low_bytes <= phase.size_high_bytes, "size_high_bytes", "is less than size_low_bytes",
                  "Use at least size_low_bytes.");
    check.require((phase.mode == accumulate) == (phase.files_per_rank > 0), "files_per_rank",
                  phase.mode == accumulate ? "is missing" : "is only for the mode accumulate",
                  phase.mode == accumulate ? "Give the number of files that every rank adds." : "Leave it out.");
    check.only(repeats || phase.transactions == 0, "transactions", "the modes transactions and flow");
    check.require(!repeats || phase.transactions > 0 || phase.stop.rule == StopRule::seconds, "transactions",
                  "is missing", "Give the number of each rank, or use the rule seconds.");
    check.require(phase.stop.rule != StopRule::wear_out, "stop.rule", "wear-out is not for small files",
                  "Use the rule stonewall.");
    check.require(repeats || phase.stop.rule != StopRule::seconds, "stop.rule",
                  "seconds needs something that can be repeated on the same files", "Use the rule stonewall.");
    check.only(repeats || !phase.verify, "verify", "the modes transactions and flow");
    check.require((phase.mode == flow) == !phase.flow.empty(), "flow",
                  phase.mode == flow ? "is missing" : "is only for the mode flow",
                  phase.mode == flow ? "List its operations." : "Leave it out.");
    check_flow(phase, check);

    PoolSet& set = sets[phase.files];
    if (set.first == nullptr) set.first = &phase;
    check_same_pool(phase, *set.first, check);
    if (phase.mode == accumulate) {
        set.filled = true;
        return;
    }
    check.require(set.filled, "files", "names a pool that no earlier phase filled",
                  "Add a phase of the mode accumulate with the same files before this one.");
    if (phase.mode == SmallFilesMode::remove && phase.stop.rule == StopRule::amount) set.filled = false;
}

void check_training(const TrainingPhase& phase, std::uint32_t ranks,
                    std::map<std::string, const TrainingPhase*>& generated, const PhaseCheck& check) {
    constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 40U;
    check.require(phase.samples() <= kMostSamples, "samples_per_file", "makes more than 2^40 samples",
                  "Use fewer files, or fewer samples in each.");
    check.require(phase.sample_stdev_bytes <= phase.sample_bytes, "sample_stdev_bytes", "is more than sample_bytes",
                  "Use at most sample_bytes.");
    check.require(phase.sample_bytes <= kMostBytes / phase.samples(), "sample_bytes", "makes more data than 2^50 bytes",
                  "Use fewer files, or smaller samples.");
    if (phase.operation == TrainingOperation::generate) {
        const auto [set, fresh] = generated.try_emplace(phase.files, &phase);
        check.require(fresh, "files", "is also the set of an earlier phase", "Give each set separate files.");
        check.only(phase.cache == Cache::as_is, "cache", "the operation train");
        check.only(!phase.verify, "verify", "the operation train");
        check_is_usual(phase, check);
        return;
    }
    check.require(phase.readers > 0 || phase.prefetch_batches == TrainingPhase{}.prefetch_batches, "prefetch_batches",
                  "has no effect without readers, since the rank reads by itself", "Leave it out, or use readers.");
    const auto set = generated.find(phase.files);
    check.require(set != generated.end(), "files", "names samples that no earlier phase generated",
                  "Add a phase of the operation generate with the same files before this one.");
    check.require(same_samples(phase, *set->second), "files", "has other files than those that were generated",
                  "Use the same file_count, samples_per_file, sample_bytes, sample_stdev_bytes and subdirectories.");
    const std::uint64_t most = phase.most_steps(ranks);
    check.require(most > 0, "batch_samples", "is more than the samples of a rank",
                  "Use smaller batches, fewer ranks or more samples.");
    check.require(phase.steps <= most, "steps", "needs more samples than there are",
                  "Use fewer steps, or 0 for all samples.");
}

void check_mixed(const Plan& plan, std::size_t index) {
    const auto& mixed = std::get<MixedPhase>(plan.phases[index]);
    const std::uint64_t ranks = std::accumulate(mixed.part_ranks.begin(), mixed.part_ranks.end(), std::uint64_t{0});
    PhaseCheck(plan.key_of(index))
        .require(ranks == plan.ranks, "parts",
                 "have " + std::to_string(ranks) + " ranks together, the team has " + std::to_string(plan.ranks),
                 "Give every rank of the team to one part.");
    std::map<std::pair<Space, std::string>, bool> changed;
    for (std::size_t part = index + 1; part < plan.after(index); ++part) {
        const PhaseCheck check(plan.key_of(part));
        const Use use = use_of(plan.phases[part]);
        const auto [known, fresh] = changed.try_emplace({use.space, files_of(plan.phases[part])}, use.changes);
        check.require(fresh || (!use.changes && !known->second), "files",
                      "is also the set of another part, and one part changes the set", "Give it separate files.");
        check.require(phase_stop(plan.phases[part]).rule != StopRule::wear_out, "stop.rule",
                      "wear-out is not for a part of a mixed phase: all ranks of the team agree",
                      "Use the rule stonewall.");
        const auto* transfer = std::get_if<TransferPhase>(&plan.phases[part]);
        check.require(transfer == nullptr || transfer->writers == 0, "writers", "is not for a part of a mixed phase",
                      "Leave it out.");
        check.require(!row_of(backend_of(plan.phases[part])).needs_processes, "backend",
                      "is not for a part of a mixed phase: it opens files with all ranks",
                      "Use another backend, or a phase of its own.");
    }
}

}  // namespace strakes
