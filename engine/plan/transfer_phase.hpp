#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "backend/registry.hpp"
#include "plan/kind.hpp"

namespace strakes {

enum class TransferOperation : std::uint8_t { write, read, rewrite, mixed };
enum class Layout : std::uint8_t { file_per_process, shared_file, file_per_writer };
enum class Grouping : std::uint8_t { node, global };
enum class Access : std::uint8_t { segmented, strided, random, whole, random_whole, draws };  // draws: with replacement
enum class Sync : std::uint8_t { none, close, fsync, fsync_each };
enum class Pattern : std::uint8_t { stamped, once };

inline constexpr auto kTransferOperations = names_of<TransferOperation>("write", "read", "rewrite", "mixed");
inline constexpr auto kStreamOperations = names_of<TransferOperation>("write", "read");
inline constexpr auto kLayouts = names_of<Layout>("file-per-process", "shared-file", "file-per-writer");
inline constexpr auto kGroupings = names_of<Grouping>("node", "global");
inline constexpr auto kAccesses = names_of<Access>("segmented", "strided", "random", "whole", "random-whole", "draws");
inline constexpr auto kSyncs = names_of<Sync>("none", "close", "fsync", "fsync-each");
inline constexpr auto kPatterns = names_of<Pattern>("stamped", "once");

// Names and values for a library, which may ignore unknown names. Sorted by name.
using Hints = std::vector<std::pair<std::string, std::string>>;

// Percentage of calls that move this many bytes.
struct SizeShare {
    std::uint64_t bytes = 0;
    std::uint32_t percent = 0;
};
inline constexpr auto kSizeShareFields = [] {
    using enum Presence;
    return std::tuple{Field{"bytes", &SizeShare::bytes, Range{1, kMostBytes}, needed},
                      Field{"percent", &SizeShare::percent, Range{1, 100}, needed}};
}();

struct TransferPhase {
    std::string name;
    bool stream = false;  // phase of kind stream: file-per-process, segmented, one transfer per segment
    TransferOperation operation{};
    Backend backend = Backend::posix;
    std::uint32_t queue_depth = 1;
    std::string files = "data";
    Layout layout{};
    bool own_directory = false;  // each file is in a separate directory
    Access access{};
    std::uint64_t transfer_bytes = 0;
    std::uint64_t block_bytes = 0;
    std::uint64_t segments = 0;
    std::uint32_t writers = 0;  // number of ranks that write for the others; 0: every rank writes its own data
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
    std::vector<SizeShare> read_sizes, write_sizes;  // sizes for the operation mixed; empty: transfer_bytes
    std::uint32_t first_ranks = 0;                   // number of ranks that write; 0: all
    bool collective = false;                         // all ranks make the library's calls together
    Hints hints;
    std::uint64_t chunk_bytes = 0;  // chunk size, only for hdf5; 0: contiguous
    Stop stop;

    [[nodiscard]] bool opens_together() const noexcept {
        return row_of(backend).needs_processes && layout == Layout::shared_file;
    }
    [[nodiscard]] bool takes_part(std::uint32_t rank) const noexcept { return first_ranks == 0 || rank < first_ranks; }
    // Return whether ranks send their data to writers. Only the writers then access the files.
    [[nodiscard]] bool gathers() const noexcept { return writers > 0 && operation == TransferOperation::write; }
    // Return the bytes of one rank. The parser ensures that their sum over all ranks is a valid file offset.
    [[nodiscard]] std::uint64_t bytes_per_rank() const noexcept { return segments * block_bytes; }
};

inline constexpr auto kTransferFields = [] {
    using enum Presence;
    using Phase = TransferPhase;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"operation", &Phase::operation, OneOf{kTransferOperations}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::transfer}},
                      Field{"queue_depth", &Phase::queue_depth, Range{1, kMostDepth}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"layout", &Phase::layout, OneOf{kLayouts}, needed},
                      Field{"own_directory", &Phase::own_directory},
                      Field{"access", &Phase::access, OneOf{kAccesses}, needed},
                      Field{"transfer_bytes", &Phase::transfer_bytes, Range{1, kMostBytes}, needed},
                      Field{"block_bytes", &Phase::block_bytes, Range{1, kMostBytes}, needed},
                      Field{"segments", &Phase::segments, Range{1, kMostCount}, needed},
                      Field{"writers", &Phase::writers, Range{0, kMostRanks}},
                      Field{"grouping", &Phase::grouping, OneOf{kGroupings}},
                      Field{"direct", &Phase::direct},
                      Field{"sync", &Phase::sync, OneOf{kSyncs}},
                      Field{"time_open", &Phase::time_open},
                      Field{"pattern", &Phase::pattern, OneOf{kPatterns}},
                      Field{"compressible_percent", &Phase::compressible_percent, kPercent},
                      Field{"duplicate_percent", &Phase::duplicate_percent, kPercent},
                      Field{"verify", &Phase::verify},
                      Field{"preallocate", &Phase::preallocate},
                      Field{"cache", &Phase::cache, OneOf{kCaches}},
                      Field{"rank_shift", &Phase::rank_shift, Range{0, kAnyCount}},
                      Field{"read_percent", &Phase::read_percent, Range{1, 99}},
                      Field{"read_sizes", &Phase::read_sizes, Form{}},
                      Field{"write_sizes", &Phase::write_sizes, Form{}},
                      Field{"first_ranks", &Phase::first_ranks, Range{0, kMostRanks}},
                      Field{"collective", &Phase::collective},
                      Field{"hints", &Phase::hints, Form{}},
                      Field{"chunk_bytes", &Phase::chunk_bytes, Range{0, UINT32_MAX}},
                      Field{"stop", &Phase::stop, Form{}}};
}();

// A stream phase works like dd: a transfer phase whose segments are single transfers.
inline constexpr auto kStreamFields = [] {
    using enum Presence;
    using Phase = TransferPhase;
    return std::tuple{Field{"name", &Phase::name, Name{}, needed},
                      Field{"operation", &Phase::operation, OneOf{kStreamOperations}, needed},
                      Field{"backend", &Phase::backend, OneBackendOf{Kind::stream}},
                      Field{"files", &Phase::files, Name{}},
                      Field{"block_bytes", &Phase::block_bytes, Range{1, kMostBytes}, needed},
                      Field{"count", &Phase::segments, Range{1, kMostCount}, needed},
                      Field{"direct", &Phase::direct},
                      Field{"sync", &Phase::sync, OneOf{kSyncs}},
                      Field{"pattern", &Phase::pattern, OneOf{kPatterns}},
                      Field{"verify", &Phase::verify},
                      Field{"cache", &Phase::cache, OneOf{kCaches}},
                      Field{"rank_shift", &Phase::rank_shift, Range{0, kAnyCount}},
                      Field{"stop", &Phase::stop, Form{}}};
}();
[[nodiscard]] inline TransferPhase stream_defaults() {
    TransferPhase phase;
    phase.stream = true;
    phase.files = "stream";
    phase.layout = Layout::file_per_process;
    phase.access = Access::segmented;
    return phase;
}

[[nodiscard]] inline bool same_geometry(const TransferPhase& one, const TransferPhase& other) noexcept {
    return one.access == other.access && one.transfer_bytes == other.transfer_bytes &&
           one.block_bytes == other.block_bytes && one.segments == other.segments;
}

}  // namespace strakes
