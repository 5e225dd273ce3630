// What every backend can do: one row each. Checks, hello and the tests read its columns, and nothing else tells them
// apart but the lines that choose a class for one (the makers at the end of workload/transfer.cpp, metadata.cpp and
// probe.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "plan/kind.hpp"

namespace strakes {

enum class Backend : std::uint8_t { posix, stdio, mmap, uring, cephfs, mpiio, hdf5, pnetcdf, raw, s3 };

// What a file holds besides the data.
enum class Format : std::uint8_t { plain, hdf5, pnetcdf, objects };
inline constexpr std::array kFormats = std::to_array<std::pair<std::string_view, Format>>(
    {{"plain", Format::plain}, {"hdf5", Format::hdf5}, {"pnetcdf", Format::pnetcdf}, {"objects", Format::objects}});

// Why a backend cannot be used here.
struct Absence {
    std::string why;  // empty for a backend that is there
    const char* remedy = "";
};

// Tried once, for those that the kernel may refuse.
[[nodiscard]] Absence absence_of_uring();
[[nodiscard]] Absence absence_of_cephfs();
[[nodiscard]] Absence absence_of_s3();

struct BackendRow {
    std::string_view name;
    Backend backend{};
    KindSet kinds;
    Format format = Format::plain;
    bool queues = false;           // keeps many requests under way
    bool gathers = false;          // may write for other ranks
    bool c_library = false;        // metadata by every call of the C library: mknod, paths, open modes, fsync
    bool drops_cache = false;      // what it is about to read, from this node's page cache
    bool needs_processes = false;  // a library over MPI: all ranks of a plan open a shared file together
    bool chunks = false;           // may store data in chunks (chunk_bytes)
    bool unmounted = false;        // the plan's directory is inside a file system that no kernel has mounted
    // Why not, after "is not for the backend NAME"; empty where it can. GCC asks for what clang-tidy finds redundant.
    // NOLINTBEGIN(readability-redundant-member-init)
    std::string_view no_direct{};
    std::string_view no_preallocate{};
    std::string_view no_cache{};
    // NOLINTEND(readability-redundant-member-init)
    Absence (*absence)() = nullptr;  // besides what a library over MPI lacks
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
     .kinds = {Kind::transfer, Kind::stream, Kind::metadata},
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

// The names of those for which `can` is true, with commas between them.
template <class Can>
[[nodiscard]] std::string backends_that(Can can) {
    std::string names;
    for (const BackendRow& row : kBackends)
        if (can(row)) names.append(names.empty() ? "" : ", ").append(row.name);
    return names;
}

// Built in, and taken by the kernel.
[[nodiscard]] Absence absence_of(Backend backend);

// Of those that need ranks as processes; every executable has its own answer.
[[nodiscard]] Absence absence_of_library(Backend backend);

}  // namespace strakes
