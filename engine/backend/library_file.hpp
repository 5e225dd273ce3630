// A file that a library over MPI reads and writes. The implementations are in engine/mpi, in executables whose ranks
// are processes. A virtual call per transfer costs little compared with the library's own work.
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
    std::string path;  // absolute
    bool creates, exclusively;
    bool reads, writes;
    bool together;              // all ranks of the plan share one handle; else this rank opens alone
    bool collective;            // all ranks that share the handle take part in each read and write
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
    // Also true if open() failed after the library had opened the file.
    [[nodiscard]] virtual bool is_open() const = 0;
    // With no bytes, the rank only takes part in a collective call.
    virtual FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) = 0;
    virtual FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) = 0;
    virtual FileStep synchronise() = 0;
    virtual FileStep close() = 0;
    // Drops the handle instead of closing the file. close() would block for ever when some ranks have no handle, or
    // after a failed call left the library in an inconsistent state.
    virtual void forget() = 0;

    // Returns the hints in effect. The file must be open.
    [[nodiscard]] virtual Hints hints() = 0;
    // Returns the offset of the data in the file, also after close(); nothing if they are not contiguous.
    [[nodiscard]] virtual std::optional<std::uint64_t> data_offset() const { return 0; }
    // Returns the library's message about the last failed call.
    [[nodiscard]] const std::string& said() const noexcept { return said_; }

  protected:
    std::string said_;
};

// Opens files for the ranks of one plan. All ranks make their first file at the same step.
class LibraryFiles {
  public:
    LibraryFiles() = default;
    LibraryFiles(const LibraryFiles&) = delete;
    LibraryFiles& operator=(const LibraryFiles&) = delete;
    virtual ~LibraryFiles() = default;

    [[nodiscard]] virtual std::unique_ptr<LibraryFile> file(Backend backend) = 0;
    // Whether the library hides errors: no rank may learn of a failed write, and collective calls may hang when some
    // ranks could not open the file or a call has failed.
    [[nodiscard]] virtual bool keep_failures_quiet() const = 0;
};

}  // namespace strakes
