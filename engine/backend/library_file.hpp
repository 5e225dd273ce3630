// A file that an MPI-based library (MPI-IO, HDF5 or PnetCDF) reads and writes. engine/mpi implements this interface,
// for ranks that are processes. A virtual call per transfer costs little compared with the work of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backend/file.hpp"
#include "plan/plan.hpp"

namespace strakes {

// Replaces the error number of a library error that has no errno equivalent.
inline constexpr int kUnnumbered = -2;

struct LibraryUse {
    std::string path;  // absolute path of the file
    bool creates, exclusively;
    bool reads, writes;
    bool together;              // all ranks of the plan share one handle; false: this rank opens the file alone
    bool collective;            // all ranks that share the handle take part in every transfer
    std::uint64_t bytes;        // length of the data in the file
    std::uint64_t chunk_bytes;  // chunk size in the file; 0: contiguous
    const Hints& hints;
};

class LibraryFile {
  public:
    LibraryFile() = default;
    LibraryFile(const LibraryFile&) = delete;
    LibraryFile& operator=(const LibraryFile&) = delete;
    virtual ~LibraryFile() = default;

    // open(), synchronise() and close() are collective over the ranks that share the handle.
    virtual FileStep open(const LibraryUse& use) = 0;
    // Returns whether the file is open. True even if open() failed after the library had opened the file.
    [[nodiscard]] virtual bool is_open() const = 0;
    // With `bytes` 0, the rank takes part in a collective call without moving data.
    virtual FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) = 0;
    virtual FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) = 0;
    virtual FileStep synchronise() = 0;
    virtual FileStep close() = 0;
    // Drops the handle instead of closing the file. close() would block for ever when some ranks have no handle, or
    // after a failed call left the library in an inconsistent state.
    virtual void forget() = 0;

    // Returns the hints in effect. The file must be open.
    [[nodiscard]] virtual Hints hints() = 0;
    // Returns the offset of the data in the file, or nothing if the data is not contiguous. Works after close().
    [[nodiscard]] virtual std::optional<std::uint64_t> data_offset() const { return 0; }
    // Returns the library's message about the last failed call.
    [[nodiscard]] const std::string& said() const noexcept { return said_; }

  protected:
    std::string said_;
};

// Creates the file objects for the ranks of one plan. All ranks must create their first file object at the same step.
class LibraryFiles {
  public:
    LibraryFiles() = default;
    LibraryFiles(const LibraryFiles&) = delete;
    LibraryFiles& operator=(const LibraryFiles&) = delete;
    virtual ~LibraryFiles() = default;

    [[nodiscard]] virtual std::unique_ptr<LibraryFile> file(Backend backend) = 0;
    // Returns true for a library that may report a failed write to no rank, and whose collective calls may hang after a
    // failure on some ranks.
    [[nodiscard]] virtual bool keep_failures_quiet() const = 0;
};

}  // namespace strakes
