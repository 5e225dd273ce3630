// Checks transfers through MPI libraries, and the keys that only these accept.
#include <cstdint>

#include "plan/phase_check.hpp"

namespace strakes {

namespace {

constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 20U;

void check_chunks(const TransferPhase& phase, std::uint32_t ranks, const PhaseCheck& check) {
    if (phase.chunk_bytes == 0) return;
    check.require(row_of(phase.backend).chunks, "chunk_bytes", "is only for the backend hdf5", "Leave it out.");
    check.require(phase.operation == TransferOperation::write, "chunk_bytes", "is only for the operation write",
                  "Leave it out: the file says how it is stored.");
    const std::uint64_t bytes = phase.bytes_per_rank() * (phase.layout == Layout::shared_file ? ranks : 1);
    check.require(phase.chunk_bytes <= bytes, "chunk_bytes", "is more than a file has", "Use a smaller chunk.");
    check.require(bytes / phase.chunk_bytes <= kMostChunks, "chunk_bytes", "makes more than 1048576 chunks of a file",
                  "Use a larger chunk.");
}

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

}  // namespace strakes
