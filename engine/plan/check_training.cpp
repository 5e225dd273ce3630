// Checks training phases.
#include "plan/phase_check.hpp"

namespace strakes {

namespace {

// Refuse the keys that only the operation train uses, unless they have their defaults.
void check_is_usual(const TrainingPhase& phase, const PhaseCheck& check) {
    const TrainingPhase usual{};
    const auto same = [&](auto TrainingPhase::* member, const char* key) {
        check.require(phase.*member == usual.*member, key, "is only for the operation train", "Leave it out.");
    };
    same(&TrainingPhase::batch_samples, "batch_samples");
    same(&TrainingPhase::readers, "readers");
    same(&TrainingPhase::prefetch_batches, "prefetch_batches");
    same(&TrainingPhase::compute_ns, "compute_ns");
    same(&TrainingPhase::compute_stdev_ns, "compute_stdev_ns");
    same(&TrainingPhase::steps, "steps");
    same(&TrainingPhase::shuffle, "shuffle");
}

}  // namespace

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
        check.require(fresh, "files", "is the set of an earlier phase, too", "Give every set files of its own.");
        check.require(phase.cache == Cache::as_is, "cache", "is only for the operation train", "Leave it out.");
        check.require(!phase.verify, "verify", "is only for the operation train", "Leave it out.");
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
    check.require(most > 0, "batch_samples", "is more than every rank has samples",
                  "Use smaller batches, fewer ranks or more samples.");
    check.require(phase.steps <= most, "steps", "needs more samples than there are",
                  "Use fewer steps, or 0 for all samples.");
}

}  // namespace strakes
