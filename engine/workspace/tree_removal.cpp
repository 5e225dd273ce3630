// Removes trees with unlinkat(2), relative to open directories.
#include "workspace/tree_removal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

#include "system/enter.hpp"

namespace strakes {

namespace {

// Plans create at most 17 levels of directories. Deeper ones are not ours.
constexpr int kMostLevels = 32;
constexpr int kMostGrowingLooks = 3;
// Directories are shared by all workers until there are kEnoughEach subdirectories per worker, or kMostShared shared
// directories. Each process reads every shared directory completely, so at most kMostShareReaders take part.
constexpr std::size_t kMostShared = 256;
constexpr std::uint32_t kMostShareReaders = 64;
constexpr std::size_t kEnoughEach = 8;

struct CloseDirectory {
    void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// Open the directory again, so that reading does not move the offset of `directory`.
DirectoryStream read_directory(int directory) {
    Descriptor own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DirectoryStream stream(own ? ::fdopendir(own.get()) : nullptr);
    if (stream) static_cast<void>(own.release());
    return stream;
}

// FNV-1a (Fowler, Noll, Vo 1991). Entries are divided by name, because processes may read a directory in different
// orders.
std::uint32_t hash(std::string_view name) noexcept {
    std::uint32_t value = 2166136261U;
    for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
    return value;
}

// Some file systems skip entries while others are removed, so a directory is read until a pass removes nothing. If the
// number of entries has grown kMostGrowingLooks times, something is filling the directory, so give up.
class Growth {
  public:
    [[nodiscard]] bool goes_on() const noexcept { return times_ < kMostGrowingLooks; }
    void count(std::size_t met) noexcept {
        if (met > before_) ++times_;
        before_ = met;
    }

  private:
    std::size_t before_ = SIZE_MAX;
    int times_ = 0;
};

bool is_dot(const char* name) noexcept { return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0; }

}  // namespace

TreeRemoval::TreeRemoval(int directory, std::string name, std::atomic<std::uint64_t>& removed, Share share)
    : directory_(directory), name_(std::move(name)), removed_(removed) {
    struct stat status{};
    if (::fstat(directory, &status) == 0) device_ = status.st_dev;
    shared_.push_back({.parent = 0, .name = {}, .path = name_});
    share_out(share);
}

// Divide the tree level by level. If a level has few directories, all workers enter them and divide their entries. If
// it has many, each worker gets some of them.
void TreeRemoval::share_out(Share share) {
    struct Found {
        std::size_t shared;
        std::string name;
        bool operator<(const Found& other) const { return std::tie(shared, name) < std::tie(other.shared, other.name); }
    };
    std::size_t first = 0;
    Opened opened;
    std::vector<Found> found;
    const auto look = [&] {
        found.clear();
        for (std::size_t i = first; i < shared_.size(); ++i) {
            const DirectoryStream stream = read_directory(directory_of(i, opened));
            while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr)
                if (!is_dot(entry->d_name) && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
                    found.push_back({i, entry->d_name});
        }
        first = shared_.size();
        // Processes may read a directory in different orders.
        std::ranges::sort(found, std::less<>());
    };
    look();
    for (int level = 0; level < kMostLevels && !found.empty(); ++level) {
        const std::size_t workers = std::size_t{share.of} * share.threads;
        const std::size_t enough = workers == 1 ? 0 : share.of > kMostShareReaders ? workers : kEnoughEach * workers;
        if (found.size() >= enough || shared_.size() + found.size() > kMostShared) break;
        if (share.of > kMostShareReaders) {
            // Every stride-th process continues, because processes with adjacent numbers are on one node.
            const std::uint32_t stride = (share.of + kMostShareReaders - 1) / kMostShareReaders;
            if (share.number % stride != 0) return;
            share = {.number = share.number / stride, .of = (share.of + stride - 1) / stride, .threads = share.threads};
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

int TreeRemoval::directory_of(std::size_t shared, Opened& opened) const {
    if (shared == 0) return directory_;
    const auto there = opened.find(shared);
    if (there != opened.end()) return there->second.get();
    const Shared& wanted = shared_[shared];
    Descriptor own(enter_directory(directory_of(wanted.parent, opened), wanted.name.c_str()));
    struct stat status{};
    if (!own || ::fstat(own.get(), &status) != 0 || status.st_dev != device_) return -1;
    return opened.emplace(shared, std::move(own)).first->second.get();
}

void TreeRemoval::work(const Pace& pace) {
    Left left;
    Walk walk{.pace = pace, .opened = {}};
    for (std::size_t i = next_.fetch_add(1); i < pieces_.size(); i = next_.fetch_add(1)) {
        const Piece& piece = pieces_[i];
        if (piece.name.empty()) {
            remove_part(piece, left, walk);
            continue;
        }
        const std::string path = shared_[piece.shared].path + "/" + piece.name;
        remove(directory_of(piece.shared, walk.opened), piece.name, path, true, 0, left, walk);
    }
    const std::lock_guard lock(mutex_);
    left_.take(std::move(left));
}

void TreeRemoval::Left::add(const char* operation, const std::string& path, int error) {
    if (!failure) failure = call_failure(operation, path, error);
    if (paths.size() < kMostLeft) paths.push_back(path);
}

void TreeRemoval::Left::take(Left&& other) {
    if (!failure) failure = std::move(other.failure);
    for (std::string& path : other.paths)
        if (paths.size() < kMostLeft) paths.push_back(std::move(path));
}

// Remove the files whose names fall to this part.
void TreeRemoval::remove_part(const Piece& piece, Left& left, Walk& walk) {
    const int directory = directory_of(piece.shared, walk.opened);
    const std::string above = shared_[piece.shared].path + "/";
    Left left_now;
    Growth growth;
    for (bool progress = true; progress && growth.goes_on();) {
        const DirectoryStream stream = read_directory(directory);
        std::size_t met = 0;
        progress = false;
        left_now = {};
        while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
            if (is_dot(entry->d_name) || entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) continue;
            if (parts_ > 1 && hash(entry->d_name) % parts_ != piece.part) continue;
            ++met;
            const std::string name = entry->d_name;
            if (remove(directory, name, above + name, false, 0, left_now, walk)) progress = true;
        }
        growth.count(met);
    }
    left.take(std::move(left_now));
}

void TreeRemoval::Walk::count_one() noexcept {
    if (!pace.on()) return;
    const std::uint64_t now = Clock::system().now();
    before = pace.hold(now, {.operations = 1, .bytes = 0, .ticks = elapsed(before, now)});
}

bool TreeRemoval::remove(int parent, const std::string& name, const std::string& path, bool maybe_directory, int depth,
                         Left& left, Walk& walk) {
    if (::unlinkat(parent, name.c_str(), 0) == 0) {
        removed_.fetch_add(1, std::memory_order_relaxed);
        walk.count_one();
        return true;
    }
    if (errno == ENOENT) return true;
    if (maybe_directory && (errno == EISDIR || errno == EPERM))
        return remove_directory(parent, name, path, depth, left, walk);
    left.add("unlink", path, errno);
    return false;
}

bool TreeRemoval::remove_directory(int parent, const std::string& name, const std::string& path, int depth, Left& left,
                                   Walk& walk) {
    const std::size_t left_before = left.paths.size();
    {
        const Descriptor directory(enter_directory(parent, name.c_str()));
        struct stat status{};  // a Btrfs subvolume is not a mount point
        if (directory && ::fstat(directory.get(), &status) == 0 && status.st_dev == device_ && depth < kMostLevels)
            empty(directory.get(), path, depth, left, walk);
    }
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0) {
        removed_.fetch_add(1, std::memory_order_relaxed);
        walk.count_one();
        return true;
    }
    if (errno == ENOENT) return true;
    if (left.paths.size() == left_before) left.add("rmdir", path, errno);  // otherwise an entry of it is listed already
    return false;
}

void TreeRemoval::empty(int directory, const std::string& path, int depth, Left& left, Walk& walk) {
    Left left_now;
    Growth growth;
    for (bool progress = true; progress && growth.goes_on();) {
        const DirectoryStream stream = read_directory(directory);
        std::size_t met = 0;
        progress = false;
        left_now = {};
        while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
            if (is_dot(entry->d_name)) continue;
            ++met;
            const bool maybe_directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
            const std::string name = entry->d_name;
            std::string below = path;
            below.append("/").append(name);
            if (remove(directory, name, below, maybe_directory, depth + 1, left_now, walk)) progress = true;
        }
        growth.count(met);
    }
    left.take(std::move(left_now));
}

std::vector<std::string> TreeRemoval::left() {
    const std::lock_guard lock(mutex_);
    return left_.paths;
}

std::optional<Failure> TreeRemoval::failure() {
    const std::lock_guard lock(mutex_);
    return left_.failure;
}

}  // namespace strakes
