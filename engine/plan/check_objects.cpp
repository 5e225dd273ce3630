// Refuses operations that object stores lack: changing, sharing, renaming and synchronising files.
#include <string>

#include "plan/phase_check.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kLeastPartBytes = std::uint64_t{5} << 20U;
constexpr std::uint64_t kMostPartBytes = std::uint64_t{5} << 30U;
constexpr std::uint64_t kMostObjectParts = 10'000;
// Small files are moved in pieces of this size, and an object must fit into one piece.
constexpr std::uint64_t kMostItemBytes = std::uint64_t{1} << 20U;

}  // namespace

void check_objects(const TransferPhase& phase, const PhaseCheck& check) {
    using enum TransferOperation;
    if (row_of(phase.backend).format != Format::objects) return;
    const std::string size = phase.stream ? "block_bytes" : "transfer_bytes";
    check.require(phase.operation == write || phase.operation == read, "operation",
                  "changes what is there, and an object is only ever written whole", "Use write or read.");
    check.require(phase.layout == Layout::file_per_process, "layout", "is for files: an object is written by one rank",
                  "Use file-per-process.");
    check.require(phase.sync != Sync::fsync, "sync", "is fsync, for which an object store has no request",
                  "Use close: an object that was acknowledged is stored.");
    if (phase.operation == read) return;
    check.require(phase.access == Access::segmented, "access",
                  "is not the order in which an object's parts are written", "Use segmented.");
    check.require(phase.stop.rule != StopRule::seconds, "stop.rule", "seconds would write the same objects again",
                  "Use the rule amount or stonewall.");
    check.require(phase.transfer_bytes <= kMostPartBytes, size, "is more than the 5 GiB of one request",
                  "Use a smaller size; each transfer is a part of the object.");
    const std::uint64_t parts = phase.bytes_per_rank() / phase.transfer_bytes;
    check.require(parts == 1 || phase.transfer_bytes >= kLeastPartBytes, size,
                  "is less than the 5 MiB that each part of an object must have",
                  "Use at least 5 MiB, or objects of one transfer.");
    check.require(parts <= kMostObjectParts, size, "makes more than the 10,000 parts that an object can have",
                  "Use a larger size, or less data for each rank.");
}

void check_objects(const MetadataPhase& phase, const PhaseCheck& check) {
    using enum MetadataOperation;
    if (row_of(phase.backend).format != Format::objects) return;
    const bool can = phase.operation == file_create || phase.operation == file_stat || phase.operation == file_read ||
                     phase.operation == file_remove;
    check.require(can, "operation", "is something that an object store cannot do",
                  "Use file-create, file-stat, file-read or file-remove, or the backend posix.");
    check.require(phase.file_bytes <= kMostItemBytes, "file_bytes", "is more than the 1 MiB of one item",
                  "Use a transfer phase for larger objects.");
}

}  // namespace strakes
