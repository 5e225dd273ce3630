// A file moved by a library over MPI. The libraries are in the executables whose ranks are processes (engine/mpi); all
// else of the engine sees this. One virtual call is nothing beside what a library does for each transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "backend/file.hpp"
#include "plan/plan.hpp"

namespace strakes {

// In place of an error number, where the library has none for what went wrong.
inline constexpr int kUnnumbered = -2;

struct LibraryUse {
    std::string path;  // absolute
    bool creates, exclusively;
    bool reads, writes;
    bool together;              // by all ranks of the plan with one handle, or by this rank alone
    bool collective;            // reads and writes are calls of all who have it open
    std::uint64_t bytes;        // of data in the file
    std::uint64_t chunk_bytes;  // in which they are stored; 0: in one piece
    const Hints& hints;
};

class LibraryFile {
  public:
    LibraryFile() = default;
    LibraryFile(const LibraryFile&) = delete;
    LibraryFile& operator=(const LibraryFile&) = delete;
    virtual ~LibraryFile() = default;

    // Opening, synchronising and closing are calls of all who have it open, or try to.
    virtual FileStep open(const LibraryUse& use) = 0;
    // Also after it could not be opened whole.
    [[nodiscard]] virtual bool is_open() const = 0;
    // Of no bytes: takes part in a collective call.
    virtual FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) = 0;
    virtual FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) = 0;
    virtual FileStep synchronise() = 0;
    virtual FileStep close() = 0;
    // Instead of closing, which would wait for ever: some ranks have no handle, or a failed call has left the library
    // in disorder.
    virtual void forget() = 0;

    // Those in effect; while it is open.
    [[nodiscard]] virtual Hints hints() = 0;
    // Where in the file the data begin, also after it was closed; nothing where they are not in one piece.
    [[nodiscard]] virtual std::optional<std::uint64_t> data_offset() const { return 0; }
    // What the library said of the call that failed last.
    [[nodiscard]] const std::string& said() const noexcept { return said_; }

  protected:
    std::string said_;
};

// For the ranks of one plan. All of them make their first file at the same step.
class LibraryFiles {
  public:
    LibraryFiles() = default;
    LibraryFiles(const LibraryFiles&) = delete;
    LibraryFiles& operator=(const LibraryFiles&) = delete;
    virtual ~LibraryFiles() = default;

    [[nodiscard]] virtual std::unique_ptr<LibraryFile> file(Backend backend) = 0;
    // A write that failed may be told to nobody; a file that some cannot open, and calls of all ranks after a failure,
    // may never come back.
    [[nodiscard]] virtual bool keep_failures_quiet() const = 0;
};

}  // namespace strakes
