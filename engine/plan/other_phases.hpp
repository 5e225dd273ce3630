// Parameters of probe, stage, small-files and training phases.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/registry.hpp"
#include "plan/kind.hpp"

namespace strakes {

enum class ProbeOperation : std::uint8_t { file_create, file_cycle, file_stat, file_read, file_fsync, write_fsync };

inline constexpr auto kProbeOperations =
    names_of<ProbeOperation>("file-create", "file-cycle", "file-stat", "file-read", "file-fsync", "write-fsync");

// Every rank starts its operations at a fixed interval. The starts of the ranks are spread evenly over this interval.
struct ProbePhase {
    std::string name;
    ProbeOperation operation{};
    Backend backend = Backend::posix;
    std::string files = "probe";
    double rate_per_s = 0;  // operations per second and rank
    double seconds = 0;
    std::uint64_t file_bytes = 0;
    bool log = false;
    Stop stop;  // always by amount: all operations that are due within `seconds`

    static constexpr std::uint64_t rank_shift = 0;
    // Return the number of operations of one rank.
    [[nodiscard]] std::uint64_t operations() const noexcept {
        return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(rate_per_s * seconds));
    }
};

inline constexpr auto kProbeFields = [] {
    using enum Presence;
    using Phase = ProbePhase;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"operation", &Phase::operation, OneOf{kProbeOperations}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::probe}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"rate_per_s", &Phase::rate_per_s, Above0{1e6}, needed},
                      Field{"seconds", &Phase::seconds, Above0{kDay}, needed},
                      Field{"file_bytes", &Phase::file_bytes, Range{0, kMostCount}},
                      Field{"log", &Phase::log}};
}();

// Delivers the whole of a shared file to every rank.
struct StagePhase {
    std::string name;
    Backend backend = Backend::posix;
    std::string files = "data";
    std::uint64_t transfer_bytes = 0;
    std::uint32_t readers_per_node = 0;  // ranks of a node that read; 0: all
    bool broadcast = false;
    Cache cache = Cache::as_is;
    bool verify = false;
    Stop stop;  // always by amount

    static constexpr std::uint64_t rank_shift = 0;
};

inline constexpr auto kStageFields = [] {
    using enum Presence;
    using Phase = StagePhase;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::stage}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"transfer_bytes", &Phase::transfer_bytes, Range{1, kMostBytes}, needed},
                      Field{"readers_per_node", &Phase::readers_per_node, Range{0, kMostRanks}},
                      Field{"broadcast", &Phase::broadcast},
                      Field{"cache", &Phase::cache, OneOf{kCaches}},
                      Field{"verify", &Phase::verify}};
}();

enum class SmallFilesMode : std::uint8_t { accumulate, transactions, remove, flow };
enum class FlowCall : std::uint8_t { create, open, write, append, read, stat, fsync, close, remove };

inline constexpr auto kSmallFilesModes = names_of<SmallFilesMode>("accumulate", "transactions", "remove", "flow");
inline constexpr auto kFlowCalls =
    names_of<FlowCall>("create", "open", "write", "append", "read", "stat", "fsync", "close", "delete");

struct FlowOperation {
    FlowCall call{};
    std::uint64_t bytes = 0;       // bytes of the operation; 0: the whole file
    std::uint64_t unit_bytes = 0;  // bytes per call; 0: the phase's unit
};

struct SmallFilesPhase {
    std::string name;
    SmallFilesMode mode{};
    Backend backend = Backend::posix;
    std::string files = "pool";
    std::uint64_t files_per_rank = 0;  // only in the mode accumulate
    std::uint64_t subdirectories = 0;
    std::uint64_t size_low_bytes = 0;
    std::uint64_t size_high_bytes = 0;
    std::uint64_t read_unit_bytes = 4096;
    std::uint64_t write_unit_bytes = 4096;
    std::uint64_t transactions = 0;
    std::uint32_t read_percent = 50;
    std::uint32_t create_percent = 50;
    std::uint64_t first_item = 0;
    bool verify = false;
    bool syncfs = false;
    std::vector<FlowOperation> flow;
    Stop stop;

    // Every rank works on its own pool.
    static constexpr std::uint64_t rank_shift = 0;
};

inline constexpr auto kFlowFields = std::tuple{Field{"op", &FlowOperation::call, OneOf{kFlowCalls}, Presence::needed},
                                               Field{"bytes", &FlowOperation::bytes, Range{0, kMostCount}},
                                               Field{"unit_bytes", &FlowOperation::unit_bytes, Range{0, kMostCount}}};

inline constexpr auto kSmallFilesFields = [] {
    using enum Presence;
    using Phase = SmallFilesPhase;
    constexpr std::uint64_t kMostItem = std::uint64_t{1} << 40U;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"mode", &Phase::mode, OneOf{kSmallFilesModes}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::small_files}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"files_per_rank", &Phase::files_per_rank, Range{0, kMostCount}},
                      Field{"subdirectories", &Phase::subdirectories, Range{0, 65536}},
                      Field{"size_low_bytes", &Phase::size_low_bytes, Range{0, kMostCount}, needed},
                      Field{"size_high_bytes", &Phase::size_high_bytes, Range{0, kMostCount}, needed},
                      Field{"read_unit_bytes", &Phase::read_unit_bytes, Range{1, kMostCount}},
                      Field{"write_unit_bytes", &Phase::write_unit_bytes, Range{1, kMostCount}},
                      Field{"transactions", &Phase::transactions, Range{0, kMostCount}},
                      Field{"read_percent", &Phase::read_percent, kPercent},
                      Field{"create_percent", &Phase::create_percent, kPercent},
                      Field{"first_item", &Phase::first_item, Range{0, kMostItem}},
                      Field{"verify", &Phase::verify},
                      Field{"syncfs", &Phase::syncfs},
                      Field{"flow", &Phase::flow, Form{}},
                      Field{"stop", &Phase::stop, Form{}}};
}();

enum class TrainingOperation : std::uint8_t { generate, train };
enum class Shuffle : std::uint8_t { none, files, samples };

inline constexpr auto kTrainingOperations = names_of<TrainingOperation>("generate", "train");
inline constexpr auto kShuffles = names_of<Shuffle>("none", "files", "samples");

inline constexpr std::uint64_t kMostReaders = 1024;                  // Maximum number of threads that read for a rank.
inline constexpr std::uint64_t kMostComputeNs = 86'400'000'000'000;  // Maximum computing time of a step: one day.

// Generates files of samples, or reads them for one epoch. Every rank acts as one accelerator.
struct TrainingPhase {
    std::string name;
    TrainingOperation operation{};
    Backend backend = Backend::posix;
    std::string files = "dataset";
    std::uint64_t file_count = 0;
    std::uint64_t samples_per_file = 1;
    std::uint64_t sample_bytes = 0;        // mean size of a sample
    std::uint64_t sample_stdev_bytes = 0;  // standard deviation of the sample size between files
    std::uint64_t subdirectories = 0;
    std::uint64_t transfer_bytes = 262144;
    std::uint64_t batch_samples = 1;
    std::uint64_t readers = 1;           // threads per rank; 0: the rank itself reads between its steps
    std::uint64_t prefetch_batches = 2;  // read-ahead limit; see ahead()
    std::uint64_t compute_ns = 0;        // computing time of a step
    std::uint64_t compute_stdev_ns = 0;
    std::uint64_t steps = 0;  // steps per rank; 0: all that the samples allow
    Shuffle shuffle = Shuffle::none;
    Cache cache = Cache::as_is;
    bool verify = false;
    Stop stop;  // always by amount

    static constexpr std::uint64_t rank_shift = 0;
    [[nodiscard]] std::uint64_t samples() const noexcept { return file_count * samples_per_file; }
    [[nodiscard]] std::uint64_t most_steps(std::uint64_t ranks) const noexcept {
        return samples() / batch_samples / ranks;
    }
    // Return the maximum number of batches that are being read or are ready: prefetch_batches, rounded up to a multiple
    // of the number of readers, and at least one per reader.
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

[[nodiscard]] inline bool same_samples(const TrainingPhase& one, const TrainingPhase& other) noexcept {
    return one.file_count == other.file_count && one.samples_per_file == other.samples_per_file &&
           one.sample_bytes == other.sample_bytes && one.sample_stdev_bytes == other.sample_stdev_bytes &&
           one.subdirectories == other.subdirectories;
}

}  // namespace strakes
