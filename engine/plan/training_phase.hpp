// Parameters of a training phase.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "backend/registry.hpp"
#include "plan/cache.hpp"
#include "plan/field.hpp"
#include "plan/stop.hpp"

namespace strakes {

enum class TrainingOperation : std::uint8_t { generate, train };
enum class Shuffle : std::uint8_t { none, files, samples };

inline constexpr std::array kTrainingOperations = std::to_array<std::pair<std::string_view, TrainingOperation>>(
    {{"generate", TrainingOperation::generate}, {"train", TrainingOperation::train}});
inline constexpr std::array kShuffles = std::to_array<std::pair<std::string_view, Shuffle>>(
    {{"none", Shuffle::none}, {"files", Shuffle::files}, {"samples", Shuffle::samples}});

inline constexpr std::uint64_t kMostReaders = 1024;                  // threads of a rank
inline constexpr std::uint64_t kMostComputeNs = 86'400'000'000'000;  // one day

// Generates files of samples, or reads them for one epoch. Every rank acts as one accelerator.
struct TrainingPhase {
    std::string name;
    TrainingOperation operation{};
    Backend backend = Backend::posix;
    std::string files = "dataset";
    std::uint64_t file_count = 0;
    std::uint64_t samples_per_file = 1;
    std::uint64_t sample_bytes = 0;        // mean
    std::uint64_t sample_stdev_bytes = 0;  // between files
    std::uint64_t subdirectories = 0;
    std::uint64_t transfer_bytes = 262144;
    std::uint64_t batch_samples = 1;
    std::uint64_t readers = 1;           // threads per rank; 0: the rank itself reads between its steps
    std::uint64_t prefetch_batches = 2;  // read-ahead limit; see ahead()
    std::uint64_t compute_ns = 0;        // per step
    std::uint64_t compute_stdev_ns = 0;
    std::uint64_t steps = 0;  // per rank; 0: as many as the samples allow
    Shuffle shuffle = Shuffle::none;
    Cache cache = Cache::as_is;
    bool verify = false;
    Stop stop;  // always amount

    static constexpr std::uint64_t rank_shift = 0;
    [[nodiscard]] std::uint64_t samples() const noexcept { return file_count * samples_per_file; }
    // Return the number of steps that one rank's share of the samples allows.
    [[nodiscard]] std::uint64_t most_steps(std::uint64_t ranks) const noexcept {
        return samples() / batch_samples / ranks;
    }
    // Return the limit of batches in flight or ready: prefetch_batches rounded up to a
    // multiple of the readers, at least one for each.
    [[nodiscard]] std::uint64_t ahead() const noexcept {
        const std::uint64_t each = readers == 0 ? 1 : (prefetch_batches + readers - 1) / readers;
        return (each == 0 ? 1 : each) * (readers == 0 ? 1 : readers);
    }
};

inline constexpr auto kTrainingFields = [] {
    using enum Presence;
    using Phase = TrainingPhase;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"operation", &Phase::operation, OneOf{kTrainingOperations}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::training}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"file_count", &Phase::file_count, Range{1, kMostCount}, needed},
                      Field{"samples_per_file", &Phase::samples_per_file, Range{1, kMostCount}},
                      Field{"sample_bytes", &Phase::sample_bytes, Range{1, kMostBytes}, needed},
                      Field{"sample_stdev_bytes", &Phase::sample_stdev_bytes, Range{0, kMostBytes}},
                      Field{"subdirectories", &Phase::subdirectories, Range{0, 65536}},
                      Field{"transfer_bytes", &Phase::transfer_bytes, Range{1, kMostBytes}},
                      Field{"batch_samples", &Phase::batch_samples, Range{1, kMostCount}},
                      Field{"readers", &Phase::readers, Range{0, kMostReaders}},
                      Field{"prefetch_batches", &Phase::prefetch_batches, Range{0, 65536}},
                      Field{"compute_ns", &Phase::compute_ns, Range{0, kMostComputeNs}},
                      Field{"compute_stdev_ns", &Phase::compute_stdev_ns, Range{0, kMostComputeNs}},
                      Field{"steps", &Phase::steps, Range{0, kMostCount}},
                      Field{"shuffle", &Phase::shuffle, OneOf{kShuffles}},
                      Field{"cache", &Phase::cache, OneOf{kCaches}},
                      Field{"verify", &Phase::verify}};
}();

// Return the buffer size of one reader. The largest sample is less than twice the mean.
[[nodiscard]] inline std::uint64_t buffer_bytes_of(const TrainingPhase& phase) noexcept {
    return std::min(phase.transfer_bytes, 2 * phase.sample_bytes);
}

// Return whether both phases use the same files with the same samples.
[[nodiscard]] inline bool same_samples(const TrainingPhase& one, const TrainingPhase& other) noexcept {
    return one.file_count == other.file_count && one.samples_per_file == other.samples_per_file &&
           one.sample_bytes == other.sample_bytes && one.sample_stdev_bytes == other.sample_stdev_bytes &&
           one.subdirectories == other.subdirectories;
}

}  // namespace strakes
