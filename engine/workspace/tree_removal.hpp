// TreeRemoval: removes the files of a plan, relative to directory descriptors, without following symbolic links or
// entering mount points.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "system/descriptor.hpp"
#include "system/enter.hpp"
#include "system/failure.hpp"
#include "team/pace.hpp"

namespace strakes {

// One object is shared by the ranks of a process. Each rank calls work(), which returns when no work is left.
class TreeRemoval {
  public:
    // The share of process `number` of `of` processes. In each process, `threads` threads call work().
    struct Share {
        std::uint32_t number = 0;
        std::uint32_t of = 1;
        std::uint32_t threads = 1;
    };

    // Prepare to remove everything in `directory`, which messages call `name`. Other threads may read `removed`, the
    // number of removed entries. All processes must have constructed their object before any process calls work().
    // Directories shared by several workers remain, empty: one process must remove them with a second TreeRemoval.
    TreeRemoval(int directory, std::string name, std::atomic<std::uint64_t>& removed)
        : TreeRemoval(directory, std::move(name), removed, Share{}) {}
    TreeRemoval(int directory, std::string name, std::atomic<std::uint64_t>& removed, Share share)
        : directory_(directory), name_(std::move(name)), removed_(removed) {
        struct stat status{};
        if (::fstat(directory, &status) == 0) device_ = status.st_dev;
        shared_.push_back({.parent = 0, .name = {}, .path = name_});
        share_out(share);
    }

    void work(const Pace& pace = {}) {
        Left left;
        Walk walk{.pace = pace, .opened = {}};
        for (std::size_t i = next_.fetch_add(1); i < pieces_.size(); i = next_.fetch_add(1)) {
            const Piece& piece = pieces_[i];
            const std::string path = shared_[piece.shared].path + "/" + piece.name;
            if (piece.name.empty())
                remove_part(piece, left, walk);
            else
                remove(directory_of(piece.shared, walk.opened), piece.name, path, true, 0, left, walk);
        }
        const std::lock_guard lock(mutex_);
        left_.take(std::move(left));
    }

    // Paths that could not be removed, at most kMostLeft.
    [[nodiscard]] std::vector<std::string> left() {
        const std::lock_guard lock(mutex_);
        return left_.paths;
    }
    [[nodiscard]] std::optional<Failure> failure() {
        const std::lock_guard lock(mutex_);
        return left_.failure;
    }

    static constexpr std::size_t kMostLeft = 64;

  private:
    // Plans create at most 17 levels of directories. Deeper directories are not part of a plan.
    static constexpr int kMostLevels = 32;
    // Limits for servers that list removed entries again or without end: passes that find no fewer entries, listed
    // names that do not exist, all names (known directories have 10 million), and names of subdirectories.
    static constexpr int kMostIdleLooks = 3;
    static constexpr auto kKept = "it is listed again after its removal: its server keeps it, or a process makes it";
    static constexpr std::size_t kMostVanished = 1'000'000;
    static constexpr std::size_t kMostListed = 100'000'000;
    static constexpr std::size_t kMostFound = 10'000'000;
    // At first, all workers read the same directories and divide the names. They stop when there are kEnoughEach
    // subdirectories per worker, or kMostShared such directories. At most kMostShareReaders processes take part.
    static constexpr std::size_t kMostShared = 256;
    static constexpr std::uint32_t kMostShareReaders = 64;
    static constexpr std::size_t kEnoughEach = 8;

    // Open the directory again, so that reading does not move the offset of `directory`.
    static DirectoryStream read_directory(int directory) {
        return stream_of(Descriptor(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    }

    // FNV-1a (Fowler, Noll, Vo 1991). Entries are divided by name, because processes may read a directory in different
    // orders.
    static std::uint32_t hash(std::string_view name) noexcept {
        std::uint32_t value = 2166136261U;
        for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
        return value;
    }

    static bool is_dot(const char* name) noexcept {
        return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0;
    }
    static bool may_be_directory(const dirent& entry) noexcept {
        return entry.d_type == DT_DIR || entry.d_type == DT_UNKNOWN;
    }

    struct Left {
        std::vector<std::string> paths;
        std::optional<Failure> failure;

        void add(const char* operation, const std::string& path, int error, const char* why = nullptr) {
            if (!failure) {
                failure = call_failure(operation, path, error);
                if (why != nullptr) failure->why = why;
            }
            if (paths.size() < kMostLeft) paths.push_back(path);
        }
        void take(Left&& other) {
            if (!failure) failure = std::move(other.failure);
            for (std::string& path : other.paths)
                if (paths.size() < kMostLeft) paths.push_back(std::move(path));
        }
    };
    // A directory in which several workers remove files at the same time. Element 0 is the top of the tree.
    struct Shared {
        std::size_t parent;
        std::string name;
        std::string path;
    };
    // Descriptors of shared directories, by index. Each rank has separate descriptors, because ranks that are threads
    // do not share a descriptor table.
    using Opened = std::map<std::size_t, Descriptor>;
    struct Walk {
        Pace pace;
        std::uint64_t before = Clock::system().now();
        Opened opened;

        void count_one() noexcept {
            if (!pace.on()) return;
            const std::uint64_t now = Clock::system().now();
            before = pace.hold(now, {.operations = 1, .bytes = 0, .ticks = elapsed(before, now)});
        }
    };

    // A directory below a shared one, with its contents; or the files of a shared directory whose names hash to `part`.
    struct Piece {
        std::size_t shared;
        std::string name;  // name of the directory; empty for files
        std::uint32_t part = 0;
    };

    // Divide the tree level by level. If a level has few directories, all workers enter these directories and divide
    // the entries. If the level has many, each worker gets some directories.
    void share_out(Share share) {
        struct Found {
            std::size_t shared;
            std::string name;
            bool operator<(const Found& other) const {
                return std::tie(shared, name) < std::tie(other.shared, other.name);
            }
        };
        std::size_t first = 0;
        Opened opened;
        std::vector<Found> found;
        const auto look = [&] {
            found.clear();
            for (std::size_t i = first; i < shared_.size(); ++i) {
                const DirectoryStream stream = read_directory(directory_of(i, opened));
                for (std::size_t listed = 0; stream && listed < kMostListed && found.size() < kMostFound; ++listed) {
                    const dirent* entry = ::readdir(stream.get());
                    if (entry == nullptr) break;
                    if (!is_dot(entry->d_name) && may_be_directory(*entry)) found.push_back({i, entry->d_name});
                }
            }
            first = shared_.size();
            std::ranges::sort(found, std::less<>());
        };
        look();
        for (int level = 0; level < kMostLevels && !found.empty(); ++level) {
            const std::size_t workers = std::size_t{share.of} * share.threads;
            const std::size_t enough = workers == 1                   ? 0
                                       : share.of > kMostShareReaders ? workers
                                                                      : kEnoughEach * workers;
            if (found.size() >= enough || shared_.size() + found.size() > kMostShared) break;
            if (share.of > kMostShareReaders) {
                // Every stride-th process continues, because processes with adjacent numbers are on one node.
                const std::uint32_t stride = (share.of + kMostShareReaders - 1) / kMostShareReaders;
                if (share.number % stride != 0) return;
                share = {
                    .number = share.number / stride, .of = (share.of + stride - 1) / stride, .threads = share.threads};
            }
            std::vector<Found> kept;
            for (const Found& each : found) {
                std::string path = shared_[each.shared].path + "/" + each.name;
                shared_.push_back({.parent = each.shared, .name = each.name, .path = std::move(path)});
                if (directory_of(shared_.size() - 1, opened) >= 0) continue;
                shared_.pop_back();
                kept.push_back(each);
            }
            for (std::size_t i = 0; i < kept.size(); ++i)
                if (i % share.of == share.number) pieces_.push_back({.shared = kept[i].shared, .name = kept[i].name});
            look();
        }
        for (std::size_t i = 0; i < found.size(); ++i)
            if (i % share.of == share.number) pieces_.push_back({.shared = found[i].shared, .name = found[i].name});
        parts_ = share.of * share.threads;
        for (std::size_t i = 0; i < shared_.size(); ++i)
            for (std::uint32_t thread = 0; thread < share.threads; ++thread)
                pieces_.push_back({.shared = i, .name = {}, .part = share.number * share.threads + thread});
    }
    // Open a shared directory once per rank. Return -1 if the directory is gone or on another device.
    [[nodiscard]] int directory_of(std::size_t shared, Opened& opened) const {
        if (shared == 0) return directory_;
        const auto there = opened.find(shared);
        if (there != opened.end()) return there->second.get();
        const Shared& wanted = shared_[shared];
        Descriptor own(enter_directory(directory_of(wanted.parent, opened), wanted.name.c_str()));
        struct stat status{};
        if (!own || ::fstat(own.get(), &status) != 0 || status.st_dev != device_) return -1;
        return opened.emplace(shared, std::move(own)).first->second.get();
    }
    // Call remove_one(entry, left) for all entries of the directory `path`. Some file systems skip entries while others
    // are removed, so the directory is read again until a pass removes nothing.
    template <class RemoveOne>
    static void remove_entries(int directory, const std::string& path, Left& left, RemoveOne remove_one) {
        Left left_now;
        std::size_t met_before = SIZE_MAX;
        int idle = 0;
        for (bool progress = true; progress;) {
            const DirectoryStream stream = read_directory(directory);
            std::size_t listed = 0, met = 0, vanished = 0;
            std::string last;
            left_now = {};
            while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
                if (is_dot(entry->d_name)) continue;
                const Fate fate = remove_one(*entry, left_now);
                if (fate != Fate::skipped) ++met;
                if (fate == Fate::removed) last = entry->d_name;
                if ((fate == Fate::vanished && ++vanished == kMostVanished) || ++listed == kMostListed) {
                    left.add("readdir", path, ENOTEMPTY, "its list of names does not end");
                    return;
                }
            }
            progress = !last.empty();
            if (met >= met_before) ++idle;
            if (progress && idle == kMostIdleLooks) {
                left_now.add("readdir", (path + "/").append(last), ENOTEMPTY, kKept);
                break;
            }
            met_before = met;
        }
        left.take(std::move(left_now));
    }
    void remove_part(const Piece& piece, Left& left, Walk& walk) {
        const int directory = directory_of(piece.shared, walk.opened);
        const std::string& path = shared_[piece.shared].path;
        remove_entries(directory, path, left, [&](const dirent& entry, Left& left_now) {
            if (may_be_directory(entry) || (parts_ > 1 && hash(entry.d_name) % parts_ != piece.part))
                return Fate::skipped;
            const std::string name = entry.d_name;
            return remove(directory, name, path + "/" + name, false, 0, left_now, walk);
        });
    }

    enum class Fate : std::uint8_t { skipped, removed, vanished, left };

    Fate remove(int parent, const std::string& name, const std::string& path, bool maybe_directory, int depth,
                Left& left, Walk& walk) {
        if (::unlinkat(parent, name.c_str(), 0) == 0) return removed_one(walk);
        if (errno == ENOENT) return Fate::vanished;
        if (maybe_directory && (errno == EISDIR || errno == EPERM))
            return remove_directory(parent, name, path, depth, left, walk);
        left.add("unlink", path, errno);
        return Fate::left;
    }
    Fate removed_one(Walk& walk) {
        removed_.fetch_add(1, std::memory_order_relaxed);
        walk.count_one();
        return Fate::removed;
    }
    Fate remove_directory(int parent, const std::string& name, const std::string& path, int depth, Left& left,
                          Walk& walk) {
        const std::size_t left_before = left.paths.size();
        {
            const Descriptor directory(enter_directory(parent, name.c_str()));
            struct stat status{};  // A Btrfs subvolume has another device number, but is not a mount point.
            if (directory && ::fstat(directory.get(), &status) == 0 && status.st_dev == device_ &&
                depth < kMostLevels) {
                remove_entries(directory.get(), path, left, [&](const dirent& entry, Left& left_now) {
                    const std::string below = entry.d_name, below_path = path + "/" + below;
                    return remove(directory.get(), below, below_path, may_be_directory(entry), depth + 1, left_now,
                                  walk);
                });
            }
        }
        if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0) return removed_one(walk);
        if (errno == ENOENT) return Fate::vanished;
        if (left.paths.size() == left_before)
            left.add("rmdir", path, errno);  // Otherwise an entry of the directory is listed.
        return Fate::left;
    }

    int directory_;
    std::string name_;
    dev_t device_ = 0;
    std::vector<Shared> shared_;
    std::vector<Piece> pieces_;
    std::uint32_t parts_ = 1;  // number of parts into which shared directories are divided
    std::atomic<std::size_t> next_{0};
    std::atomic<std::uint64_t>& removed_;
    std::mutex mutex_;
    Left left_;
};

}  // namespace strakes
