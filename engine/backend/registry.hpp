// A table of the capabilities of backends, with one row per backend. Plan checks, the hello message and the tests read
// the columns. Other code distinguishes backends only to choose a class: the functions make_...() at the end of
// workload/transfer.cpp, metadata.cpp and probe.cpp, and mpi/libraries.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "plan/kind.hpp"

namespace strakes {

enum class Backend : std::uint8_t { posix, stdio, mmap, uring, cephfs, mpiio, hdf5, pnetcdf, raw, s3 };

enum class Format : std::uint8_t { plain, hdf5, pnetcdf, objects };
inline constexpr auto kFormats = names_of<Format>("plain", "hdf5", "pnetcdf", "objects");

struct Absence {
    std::string why;  // reason; empty if the backend is available
    const char* remedy = "";
};

// io_uring and the libraries are tried once per process; the environment variables for S3 are read in each call.
[[nodiscard]] Absence absence_of_uring();
[[nodiscard]] Absence absence_of_cephfs();
[[nodiscard]] Absence absence_of_s3();

struct BackendRow {
    std::string_view name;
    Backend backend{};
    KindSet kinds;
    Format format = Format::plain;
    bool queues = false;           // keeps many requests in flight
    bool gathers = false;          // ranks may write the data of other ranks
    bool c_library = false;        // all metadata calls of the C library: mknod, paths, open modes, fsync
    bool drops_cache = false;      // can drop a file's data from this node's page cache before reading
    bool needs_processes = false;  // an MPI-based library: all ranks of a plan open a shared file collectively
    bool chunks = false;           // may store data in chunks (chunk_bytes)
    bool unmounted = false;        // the plan's directory is in a file system that is not mounted
    // Reasons against an option, after "is not for the backend NAME" in messages; empty if the option is supported.
    // GCC warns without the initialisers that clang-tidy finds redundant.
    // NOLINTBEGIN(readability-redundant-member-init)
    std::string_view no_direct{};
    std::string_view no_preallocate{};
    std::string_view no_cache{};
    // NOLINTEND(readability-redundant-member-init)
    Absence (*absence)() = nullptr;  // null for MPI-based libraries: absence_of_library() covers them
};

inline constexpr std::string_view kThroughMemory = ", which goes through memory of its own";
inline constexpr std::string_view kOpensItself =
    ", which opens files itself; some libraries take it as hints (direct_read, direct_write)";
inline constexpr std::string_view kLaysOutItself = ", which lays files out itself";

inline constexpr std::array kBackends = std::to_array<BackendRow>({
    {.name = "posix",
     .backend = Backend::posix,
     .kinds = {Kind::transfer, Kind::stream, Kind::metadata, Kind::small_files, Kind::probe, Kind::stage,
               Kind::training},
     .gathers = true,
     .c_library = true,
     .drops_cache = true},
    {.name = "stdio",
     .backend = Backend::stdio,
     .kinds = {Kind::transfer, Kind::stream},
     .gathers = true,
     .no_direct = kThroughMemory},
    {.name = "mmap",
     .backend = Backend::mmap,
     .kinds = {Kind::transfer, Kind::stream},
     .gathers = true,
     .no_direct = kThroughMemory},
    {.name = "uring",
     .backend = Backend::uring,
     .kinds = {Kind::transfer, Kind::stream},
     .queues = true,
     .absence = absence_of_uring},
    {.name = "cephfs",
     .backend = Backend::cephfs,
     .kinds = {Kind::transfer, Kind::stream, Kind::metadata, Kind::probe},
     .gathers = true,
     .unmounted = true,
     .no_direct = ", whose clients have caches of their own",
     .no_preallocate = ", whose files have no blocks",
     .no_cache = ": every rank's client has a cache of its own",
     .absence = absence_of_cephfs},
    {.name = "mpiio",
     .backend = Backend::mpiio,
     .kinds = {Kind::transfer},
     .needs_processes = true,
     .no_direct = kOpensItself},
    {.name = "hdf5",
     .backend = Backend::hdf5,
     .kinds = {Kind::transfer},
     .format = Format::hdf5,
     .needs_processes = true,
     .chunks = true,
     .no_direct = kOpensItself,
     .no_preallocate = kLaysOutItself},
    {.name = "pnetcdf",
     .backend = Backend::pnetcdf,
     .kinds = {Kind::transfer},
     .format = Format::pnetcdf,
     .needs_processes = true,
     .no_direct = kOpensItself,
     .no_preallocate = kLaysOutItself},
    {.name = "raw", .backend = Backend::raw, .kinds = {Kind::transfer, Kind::stream, Kind::metadata}, .gathers = true},
    {.name = "s3",
     .backend = Backend::s3,
     .kinds = {Kind::transfer, Kind::stream, Kind::metadata},
     .format = Format::objects,
     .no_direct = ", whose objects are reached over the network",
     .no_preallocate = ", whose objects are made when they are written",
     .no_cache = ": objects are not in the page cache of this node",
     .absence = absence_of_s3},
});

[[nodiscard]] constexpr const BackendRow& row_of(Backend backend) noexcept {
    for (const BackendRow& row : kBackends)
        if (row.backend == backend) return row;
    return kBackends.front();
}

template <class Can>
[[nodiscard]] std::string backends_that(Can can) {
    std::string names;
    for (const BackendRow& row : kBackends)
        if (can(row)) names.append(names.empty() ? "" : ", ").append(row.name);
    return names;
}

[[nodiscard]] Absence absence_of(Backend backend);

// Returns why a backend whose ranks are processes cannot be used. Each executable defines this function differently.
[[nodiscard]] Absence absence_of_library(Backend backend);

}  // namespace strakes
