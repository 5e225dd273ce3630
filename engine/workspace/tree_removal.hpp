// TreeRemoval: removes the files of a plan, relative to directory descriptors, without following symbolic links or
// entering mount points.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "system/descriptor.hpp"
#include "system/failure.hpp"
#include "team/pace.hpp"

namespace strakes {

// Shared by the ranks. Each calls work(), which returns when no work is left.
class TreeRemoval {
  public:
    // The share of one of `of` processes, each with `threads` threads that call work().
    struct Share {
        std::uint32_t number = 0;
        std::uint32_t of = 1;
        std::uint32_t threads = 1;
    };

    // Prepare to remove everything in `directory`, which messages call `name`. Count removed files and directories in
    // `removed`, which other threads may read. The constructor reads the upper levels to divide the work, so all
    // processes must have constructed theirs before any of them calls work(). Directories shared by several workers
    // remain, empty. One process must remove them with a second TreeRemoval.
    TreeRemoval(int directory, std::string name, std::atomic<std::uint64_t>& removed)
        : TreeRemoval(directory, std::move(name), removed, Share{}) {}
    TreeRemoval(int directory, std::string name, std::atomic<std::uint64_t>& removed, Share share);

    void work(const Pace& pace = {});

    // Paths that could not be removed, at most kMostLeft.
    [[nodiscard]] std::vector<std::string> left();
    // Why the first of them could not be removed.
    [[nodiscard]] std::optional<Failure> failure();

    static constexpr std::size_t kMostLeft = 64;

  private:
    // Paths that could not be removed, and why the first of them.
    struct Left {
        std::vector<std::string> paths;
        std::optional<Failure> failure;

        void add(const char* operation, const std::string& path, int error);
        void take(Left&& other);
    };
    // A directory in which several workers remove files at the same time. Element 0 is the top of the tree.
    struct Shared {
        std::size_t parent;
        std::string name;
        std::string path;
    };
    // Descriptors of shared directories, by index. Each rank has its own, because ranks that are threads do not share a
    // descriptor table.
    using Opened = std::map<std::size_t, Descriptor>;
    // State of one rank.
    struct Walk {
        Pace pace;
        std::uint64_t before = Clock::system().now();
        Opened opened;

        void count_one() noexcept;
    };

    // A directory below a shared one, with its contents; or the files of a shared directory whose names fall to part
    // `part`.
    struct Piece {
        std::size_t shared;
        std::string name;  // empty for files
        std::uint32_t part = 0;
    };

    void share_out(Share share);
    // Open a shared directory once per rank. Return -1 if it is gone or on another device.
    [[nodiscard]] int directory_of(std::size_t shared, Opened& opened) const;
    void remove_part(const Piece& piece, Left& left, Walk& walk);

    // Return whether the entry is gone. Otherwise add it to `left`.
    bool remove(int parent, const std::string& name, const std::string& path, bool maybe_directory, int depth,
                Left& left, Walk& walk);
    bool remove_directory(int parent, const std::string& name, const std::string& path, int depth, Left& left,
                          Walk& walk);
    void empty(int directory, const std::string& path, int depth, Left& left, Walk& walk);

    int directory_;
    std::string name_;
    dev_t device_ = 0;
    std::vector<Shared> shared_;
    std::vector<Piece> pieces_;
    std::uint32_t parts_ = 1;  // into which shared directories are divided
    std::atomic<std::size_t> next_{0};
    std::atomic<std::uint64_t>& removed_;
    std::mutex mutex_;
    Left left_;
};

}  // namespace strakes
