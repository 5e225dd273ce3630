// Checks phases on backends that are MPI libraries or object stores.
#include <cstdint>
#include <string>

#include "plan/parse.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 20U;

void check_chunks(const TransferPhase& phase, std::uint32_t ranks, const PhaseCheck& check) {
    if (phase.chunk_bytes == 0) return;
    check.only(row_of(phase.backend).chunks, "chunk_bytes", "the backend hdf5");
    check.require(phase.operation == TransferOperation::write, "chunk_bytes", "is only for the operation write",
                  "Leave it out: the file says how it is stored.");
    const std::uint64_t bytes = phase.bytes_per_rank() * (phase.layout == Layout::shared_file ? ranks : 1);
    check.require(phase.chunk_bytes <= bytes, "chunk_bytes", "is more than a file has", "Use a smaller chunk.");
    check.require(bytes / phase.chunk_bytes <= kMostChunks, "chunk_bytes", "makes more than 1048576 chunks of a file",
                  "Use a larger chunk.");
}

constexpr std::uint64_t kLeastPartBytes = std::uint64_t{5} << 20U;
constexpr std::uint64_t kMostPartBytes = std::uint64_t{5} << 30U;
constexpr std::uint64_t kMostObjectParts = 10'000;
// Maximum size of an item in an object store: items are moved in pieces of this size, and an object is one piece.
constexpr std::uint64_t kMostItemBytes = std::uint64_t{1} << 20U;

}  // namespace

void check_library(const TransferPhase& phase, std::uint32_t ranks, const PhaseCheck& check) {
    const bool library = row_of(phase.backend).needs_processes;
    check.require(library || !phase.collective, "collective", "is only for the backends mpiio, hdf5 and pnetcdf",
                  "Leave it out, or use one of these.");
    check.require(library || phase.hints.empty(), "hints", "are only for the backends mpiio, hdf5 and pnetcdf",
                  "Leave them out, or use one of these.");
    check_chunks(phase, ranks, check);
    if (!library) return;
    check.require(phase.layout != Layout::file_per_writer, "layout",
                  "file-per-writer is not for the backends mpiio, hdf5 and pnetcdf",
                  "Use shared-file with collective, which merges the data of ranks.");
    check.require(!phase.gathers(), "writers", "is not for the backends mpiio, hdf5 and pnetcdf",
                  "Leave it out, and use collective: the hint cb_nodes says how many ranks write.");
    check.require(!phase.collective || phase.operation != TransferOperation::mixed, "collective",
                  "is not for the operation mixed, where some ranks read while others write", "Leave it out.");
    check.require(phase.transfer_bytes <= INT32_MAX, "transfer_bytes", "is more than one call of MPI takes",
                  "Use at most 2147483647.");
}

void check_objects(const TransferPhase& phase, const PhaseCheck& check) {
    using enum TransferOperation;
    if (row_of(phase.backend).format != Format::objects) return;
    const std::string size = phase.stream ? "block_bytes" : "transfer_bytes";
    check.require(phase.operation == write || phase.operation == read, "operation",
                  "changes existing data, but an object is always written as a whole", "Use write or read.");
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
