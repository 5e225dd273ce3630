// The plan as parsed and validated; schemas/plan.json says what every member means.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace strakes {

enum class StopRule : std::uint8_t { amount, stonewall, seconds };
enum class Backend : std::uint8_t { posix, stdio, mmap, uring, cephfs, mpiio, hdf5, pnetcdf };
enum class TransferOperation : std::uint8_t { write, read, rewrite, mixed };
enum class Layout : std::uint8_t { file_per_process, shared_file, file_per_writer };
enum class Grouping : std::uint8_t { node, global };
enum class Access : std::uint8_t { segmented, strided, random, whole, random_whole };
enum class Sync : std::uint8_t { none, close, fsync };
enum class Pattern : std::uint8_t { stamped, once };
enum class Cache : std::uint8_t { as_is, drop, drop_system };
enum class MetadataOperation : std::uint8_t {
    dir_create,
    dir_stat,
    dir_rename,
    dir_remove,
    file_create,
    file_stat,
    file_open_close,
    file_read,
    file_rename,
    file_remove
};
enum class Directory : std::uint8_t { unique, shared };
enum class Share : std::uint8_t { own, all };
enum class CreateWith : std::uint8_t { open, mknod };
enum class Paths : std::uint8_t { relative, absolute, mdtest };
enum class OpenMode : std::uint8_t { least, read_write };
enum class SmallFilesMode : std::uint8_t { accumulate, transactions, remove, flow };
enum class ProbeOperation : std::uint8_t { file_create, file_cycle, file_stat, file_read, write_fsync };
enum class FlowCall : std::uint8_t { create, open, write, append, read, stat, fsync, close, remove };

// By a library over MPI, for ranks that are processes.
[[nodiscard]] constexpr bool by_library(Backend backend) noexcept { return backend >= Backend::mpiio; }
// Whether what the one has written the other can read: some have more in a file than the data.
[[nodiscard]] constexpr bool same_format(Backend one, Backend other) noexcept {
    return one == other || (one < Backend::hdf5 && other < Backend::hdf5);
}

// Names and values for a library, which may know them or not; by name.
using Hints = std::vector<std::pair<std::string, std::string>>;

struct Stop {
    StopRule rule = StopRule::amount;
    double seconds = 0;
};

struct TransferPhase {
    std::string name;
    bool stream = false;  // of the kind stream: file-per-process, segmented, every transfer a segment
    TransferOperation operation{};
    Backend backend = Backend::posix;
    std::uint32_t queue_depth = 1;
    std::string files = "data";
    Layout layout{};
    Access access{};
    std::uint64_t transfer_bytes = 0;
    std::uint64_t block_bytes = 0;
    std::uint64_t segments = 0;
    std::uint32_t writers = 0;  // 0: every rank writes its own
    Grouping grouping = Grouping::node;
    bool direct = false;
    Sync sync = Sync::close;
    bool time_open = true;
    Pattern pattern = Pattern::stamped;
    std::uint32_t compressible_percent = 0;
    std::uint32_t duplicate_percent = 0;
    bool verify = false;
    bool preallocate = false;
    Cache cache = Cache::as_is;
    std::uint64_t rank_shift = 0;
    std::optional<std::uint32_t> read_percent;
    std::uint64_t delay_ns = 0;  // busy after each call
    bool collective = false;     // calls of a library that all ranks make together
    Hints hints;
    std::uint64_t chunk_bytes = 0;  // of hdf5; 0: contiguous
    Stop stop;

    // All ranks have one file open, by one handle.
    [[nodiscard]] bool opens_together() const noexcept { return by_library(backend) && layout == Layout::shared_file; }
    // Data go to the writers, who alone touch the files.
    [[nodiscard]] bool gathers() const noexcept { return writers > 0 && operation == TransferOperation::write; }
    // Bytes of one rank; the parser has made sure that ranks x this fits a file offset.
    [[nodiscard]] std::uint64_t bytes_per_rank() const noexcept { return segments * block_bytes; }
};

// Both do the same transfers of the same bytes of a rank.
[[nodiscard]] inline bool same_geometry(const TransferPhase& one, const TransferPhase& other) noexcept {
    return one.access == other.access && one.transfer_bytes == other.transfer_bytes &&
           one.block_bytes == other.block_bytes && one.segments == other.segments;
}

struct MetadataPhase {
    std::string name;
    MetadataOperation operation{};
    Backend backend = Backend::posix;
    std::uint32_t queue_depth = 1;
    std::string files = "items";
    Directory directory{};
    std::uint64_t items = 0;
    std::uint32_t depth = 0;
    std::uint32_t branch = 1;
    std::uint64_t file_bytes = 0;
    CreateWith create_with = CreateWith::open;
    Paths paths = Paths::relative;
    OpenMode open_mode = OpenMode::least;
    bool fsync = false;
    std::uint64_t rank_shift = 0;
    Share share = Share::own;
    std::uint64_t delay_ns = 0;  // busy after each operation
    Stop stop;
};

struct FlowOperation {
    FlowCall call{};
    std::uint64_t bytes = 0;       // 0: the whole file
    std::uint64_t unit_bytes = 0;  // of one call; 0: the phase's unit
};

struct SmallFilesPhase {
    std::string name;
    SmallFilesMode mode{};
    Backend backend = Backend::posix;
    std::string files = "pool";
    std::uint64_t files_per_rank = 0;  // accumulate only
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
    std::vector<FlowOperation> flow;
    Stop stop;

    // Every rank has a pool of its own.
    static constexpr std::uint64_t rank_shift = 0;
};

// One operation of every rank at each moment of a fixed schedule.
struct ProbePhase {
    std::string name;
    ProbeOperation operation{};
    Backend backend = Backend::posix;
    std::string files = "probe";
    double rate_per_s = 0;  // of one rank
    double seconds = 0;
    std::uint64_t file_bytes = 0;
    bool log = false;
    Stop stop;  // always the amount: all that is due within the seconds

    static constexpr std::uint64_t rank_shift = 0;
    // Of one rank.
    [[nodiscard]] std::uint64_t operations() const noexcept {
        return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(rate_per_s * seconds));
    }
};

// All ranks need the whole of a shared file.
struct StagePhase {
    std::string name;
    Backend backend = Backend::posix;
    std::string files = "data";
    std::uint64_t transfer_bytes = 0;
    std::uint32_t readers_per_node = 0;  // 0: all ranks
    bool broadcast = false;
    Cache cache = Cache::as_is;
    bool verify = false;
    Stop stop;  // always the amount

    static constexpr std::uint64_t rank_shift = 0;
};

// Several phases at once, each by ranks of its own; they begin together.
struct MixedPhase {
    std::string name;
    std::vector<std::uint32_t> part_ranks;  // of each part, in the order of the ranks
    Backend backend = Backend::posix;       // of its first part
    Stop stop;                              // that of every part, but for amount

    static constexpr std::uint64_t rank_shift = 0;
    [[nodiscard]] std::size_t parts() const noexcept { return part_ranks.size(); }
    [[nodiscard]] std::uint32_t first_rank_of(std::size_t part) const noexcept {
        return std::accumulate(part_ranks.begin(), part_ranks.begin() + static_cast<std::ptrdiff_t>(part), 0U);
    }
    // Of the ranks of the team, whose number is that of all parts together.
    [[nodiscard]] std::size_t part_of(std::uint32_t rank) const noexcept {
        std::size_t part = 0;
        for (; part + 1 < parts() && rank >= part_ranks[part]; ++part) rank -= part_ranks[part];
        return part;
    }
};

using Phase = std::variant<TransferPhase, MetadataPhase, SmallFilesPhase, ProbePhase, StagePhase, MixedPhase>;

struct Plan {
    std::uint32_t seed = 0;
    std::uint32_t ranks = 1;
    std::optional<std::uint32_t> ranks_per_node;  // at most so many of one node
    std::uint64_t memory_hog_bytes = 0;           // held on every node while the plan runs
    std::vector<Phase> phases;                    // a mixed phase is followed by its parts

    // The index of the phase after the one at `index` and its parts.
    [[nodiscard]] std::size_t after(std::size_t index) const;
    // Of what a rank does in the phase at `index`: that phase, or one of its parts.
    [[nodiscard]] std::size_t of_rank(std::size_t index, std::uint32_t rank) const;
    // How many phases come before the one at `index`, parts not counted.
    [[nodiscard]] std::size_t number_of(std::size_t index) const;
    // The key of the phase or part at `index` in the plan's JSON.
    [[nodiscard]] std::string key_of(std::size_t index) const;
};

inline constexpr std::array<std::string_view, 7> kKinds{"transfer", "metadata", "stream", "small-files",
                                                        "probe",    "stage",    "mixed"};

inline constexpr std::array kStopRules = std::to_array<std::pair<std::string_view, StopRule>>(
    {{"amount", StopRule::amount}, {"stonewall", StopRule::stonewall}, {"seconds", StopRule::seconds}});
inline constexpr std::array kBackends =
    std::to_array<std::pair<std::string_view, Backend>>({{"posix", Backend::posix},
                                                         {"stdio", Backend::stdio},
                                                         {"mmap", Backend::mmap},
                                                         {"uring", Backend::uring},
                                                         {"cephfs", Backend::cephfs},
                                                         {"mpiio", Backend::mpiio},
                                                         {"hdf5", Backend::hdf5},
                                                         {"pnetcdf", Backend::pnetcdf}});
inline constexpr std::array kStreamBackends =
    std::to_array<std::pair<std::string_view, Backend>>({{"posix", Backend::posix},
                                                         {"stdio", Backend::stdio},
                                                         {"mmap", Backend::mmap},
                                                         {"uring", Backend::uring},
                                                         {"cephfs", Backend::cephfs}});
inline constexpr std::array kMetadataBackends = std::to_array<std::pair<std::string_view, Backend>>(
    {{"posix", Backend::posix}, {"uring", Backend::uring}, {"cephfs", Backend::cephfs}});
inline constexpr std::array kTransferOperations =
    std::to_array<std::pair<std::string_view, TransferOperation>>({{"write", TransferOperation::write},
                                                                   {"read", TransferOperation::read},
                                                                   {"rewrite", TransferOperation::rewrite},
                                                                   {"mixed", TransferOperation::mixed}});
inline constexpr std::array kStreamOperations = std::to_array<std::pair<std::string_view, TransferOperation>>(
    {{"write", TransferOperation::write}, {"read", TransferOperation::read}});
inline constexpr std::array kLayouts =
    std::to_array<std::pair<std::string_view, Layout>>({{"file-per-process", Layout::file_per_process},
                                                        {"shared-file", Layout::shared_file},
                                                        {"file-per-writer", Layout::file_per_writer}});
inline constexpr std::array kGroupings =
    std::to_array<std::pair<std::string_view, Grouping>>({{"node", Grouping::node}, {"global", Grouping::global}});
inline constexpr std::array kAccesses =
    std::to_array<std::pair<std::string_view, Access>>({{"segmented", Access::segmented},
                                                        {"strided", Access::strided},
                                                        {"random", Access::random},
                                                        {"whole", Access::whole},
                                                        {"random-whole", Access::random_whole}});
inline constexpr std::array kSyncs = std::to_array<std::pair<std::string_view, Sync>>(
    {{"none", Sync::none}, {"close", Sync::close}, {"fsync", Sync::fsync}});
inline constexpr std::array kPatterns =
    std::to_array<std::pair<std::string_view, Pattern>>({{"stamped", Pattern::stamped}, {"once", Pattern::once}});
inline constexpr std::array kCaches = std::to_array<std::pair<std::string_view, Cache>>(
    {{"as-is", Cache::as_is}, {"drop", Cache::drop}, {"drop-system", Cache::drop_system}});
inline constexpr std::array kMetadataOperations = std::to_array<std::pair<std::string_view, MetadataOperation>>(
    {{"dir-create", MetadataOperation::dir_create},
     {"dir-stat", MetadataOperation::dir_stat},
     {"dir-rename", MetadataOperation::dir_rename},
     {"dir-remove", MetadataOperation::dir_remove},
     {"file-create", MetadataOperation::file_create},
     {"file-stat", MetadataOperation::file_stat},
     {"file-open-close", MetadataOperation::file_open_close},
     {"file-read", MetadataOperation::file_read},
     {"file-rename", MetadataOperation::file_rename},
     {"file-remove", MetadataOperation::file_remove}});
inline constexpr std::array kDirectories = std::to_array<std::pair<std::string_view, Directory>>(
    {{"unique", Directory::unique}, {"shared", Directory::shared}});
inline constexpr std::array kShares =
    std::to_array<std::pair<std::string_view, Share>>({{"own", Share::own}, {"all", Share::all}});
inline constexpr std::array kCreateWiths =
    std::to_array<std::pair<std::string_view, CreateWith>>({{"open", CreateWith::open}, {"mknod", CreateWith::mknod}});
inline constexpr std::array kPaths = std::to_array<std::pair<std::string_view, Paths>>(
    {{"relative", Paths::relative}, {"absolute", Paths::absolute}, {"mdtest", Paths::mdtest}});
inline constexpr std::array kOpenModes = std::to_array<std::pair<std::string_view, OpenMode>>(
    {{"least", OpenMode::least}, {"read-write", OpenMode::read_write}});
inline constexpr std::array kSmallFilesBackends =
    std::to_array<std::pair<std::string_view, Backend>>({{"posix", Backend::posix}});
inline constexpr std::array kProbeBackends =
    std::to_array<std::pair<std::string_view, Backend>>({{"posix", Backend::posix}, {"cephfs", Backend::cephfs}});
inline constexpr std::array kSmallFilesModes =
    std::to_array<std::pair<std::string_view, SmallFilesMode>>({{"accumulate", SmallFilesMode::accumulate},
                                                                {"transactions", SmallFilesMode::transactions},
                                                                {"remove", SmallFilesMode::remove},
                                                                {"flow", SmallFilesMode::flow}});
inline constexpr std::array kProbeOperations =
    std::to_array<std::pair<std::string_view, ProbeOperation>>({{"file-create", ProbeOperation::file_create},
                                                                {"file-cycle", ProbeOperation::file_cycle},
                                                                {"file-stat", ProbeOperation::file_stat},
                                                                {"file-read", ProbeOperation::file_read},
                                                                {"write-fsync", ProbeOperation::write_fsync}});
inline constexpr std::array kFlowCalls =
    std::to_array<std::pair<std::string_view, FlowCall>>({{"create", FlowCall::create},
                                                          {"open", FlowCall::open},
                                                          {"write", FlowCall::write},
                                                          {"append", FlowCall::append},
                                                          {"read", FlowCall::read},
                                                          {"stat", FlowCall::stat},
                                                          {"fsync", FlowCall::fsync},
                                                          {"close", FlowCall::close},
                                                          {"delete", FlowCall::remove}});

// The name of a value in one of the tables above.
template <class Table, class Value>
constexpr std::string_view name_in(const Table& table, Value value) noexcept {
    for (const auto& [name, candidate] : table)
        if (candidate == value) return name;
    return "";
}

[[nodiscard]] inline const std::string& phase_name(const Phase& phase) {
    return std::visit([](const auto& body) -> const std::string& { return body.name; }, phase);
}
[[nodiscard]] inline const Stop& phase_stop(const Phase& phase) {
    return std::visit([](const auto& body) -> const Stop& { return body.stop; }, phase);
}
[[nodiscard]] std::string_view phase_kind(const Phase& phase);
[[nodiscard]] std::string_view phase_operation(const Phase& phase);
[[nodiscard]] inline Backend backend_of(const Phase& phase) {
    return std::visit([](const auto& body) { return body.backend; }, phase);
}
[[nodiscard]] inline std::string_view phase_backend(const Phase& phase) {
    return name_in(kBackends, backend_of(phase));
}
// The plan's directory is inside a Ceph file system that no kernel has mounted.
[[nodiscard]] inline bool inside_ceph(const Plan& plan) {
    return !plan.phases.empty() && backend_of(plan.phases.front()) == Backend::cephfs;
}

[[nodiscard]] constexpr bool is_creation(MetadataOperation operation) noexcept {
    return operation == MetadataOperation::dir_create || operation == MetadataOperation::file_create;
}
[[nodiscard]] constexpr bool is_removal(MetadataOperation operation) noexcept {
    return operation == MetadataOperation::dir_remove || operation == MetadataOperation::file_remove;
}
[[nodiscard]] constexpr bool is_rename(MetadataOperation operation) noexcept {
    return operation == MetadataOperation::dir_rename || operation == MetadataOperation::file_rename;
}
// Looks at, opens or reads what is there.
[[nodiscard]] constexpr bool leaves_as_is(MetadataOperation operation) noexcept {
    return !is_creation(operation) && !is_removal(operation) && !is_rename(operation);
}
[[nodiscard]] constexpr bool on_directories(MetadataOperation operation) noexcept {
    return operation <= MetadataOperation::dir_remove;
}

}  // namespace strakes
