// Removing what a plan left: through directory descriptors, following no symbolic link, entering nothing that is
// mounted.
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

// Shared by the ranks: each calls work(), which returns when nothing is left to take.
class TreeRemoval {
  public:
    // One of several processes that do this together takes one of as many shares; each of them has so many threads
    // that call work().
    struct Share {
        std::uint32_t number = 0;
        std::uint32_t of = 1;
        std::uint32_t threads = 1;
    };

    // Of everything in the directory; `name` is its own, for messages. Counts what is gone in `removed`, which others
    // may watch. Looks at the upper levels to share them evenly, so nobody removes anything before all have made
    // theirs. Directories that were shared stay, empty: one removal by one process follows.
    TreeRemoval(int directory, std::string name, std::atomic<std::uint64_t>& removed)
        : TreeRemoval(directory, std::move(name), removed, Share{}) {}
    TreeRemoval(int directory, std::string name, std::atomic<std::uint64_t>& removed, Share share);

    void work(const Pace& pace = {});

    // What could not be removed, at most kMostLeft of it.
    [[nodiscard]] std::vector<std::string> left();
    // Why the first of it could not be.
    [[nodiscard]] std::optional<Failure> failure();

    static constexpr std::size_t kMostLeft = 64;

  private:
    // What could not be removed, and by which failure of the first.
    struct Left {
        std::vector<std::string> paths;
        std::optional<Failure> failure;

        void add(const char* operation, const std::string& path, int error);
        void take(Left&& other);
    };
    // A directory in which several remove at a time; the first is the topmost.
    struct Shared {
        std::size_t parent;
        std::string name;
        std::string path;
    };
    // Of shared directories, by their numbers: ranks that are threads have no descriptors in common.
    using Opened = std::map<std::size_t, Descriptor>;
    // One rank's way through the tree.
    struct Walk {
        Pace pace;
        std::uint64_t before = Clock::system().now();
        Opened opened;

        void count_one() noexcept;
    };

    // A directory below a shared one, whole; or of a shared one the entries that are no directories, as far as their
    // names fall to this part of so many.
    struct Piece {
        std::size_t shared;
        std::string name;  // empty: entries
        std::uint32_t part = 0;
    };

    void share_out(Share share);
    // Opened once; -1 where it is gone, or another file system's by now.
    [[nodiscard]] int directory_of(std::size_t shared, Opened& opened) const;
    void remove_part(const Piece& piece, Left& left, Walk& walk);

    // Whether it is gone; what is not goes to `left`.
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
    std::uint32_t parts_ = 1;  // of the entries of shared directories
    std::atomic<std::size_t> next_{0};
    std::atomic<std::uint64_t>& removed_;
    std::mutex mutex_;
    Left left_;
};

}  // namespace strakes
