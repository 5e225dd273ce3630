// Removal of trees: unlinkat and rmdir below open directories.
#include "workspace/tree_removal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "system/descriptor.hpp"
#include "system/enter.hpp"

namespace strakes {

namespace {

// Plans make 17 levels at most; what is deeper is not ours.
constexpr int kMostLevels = 32;
constexpr int kMostGrowingLooks = 3;

struct CloseDirectory {
    void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};
using Stream = std::unique_ptr<DIR, CloseDirectory>;

// A stream of its own: reading does not move the given descriptor.
Stream read_directory(int directory) {
    Descriptor own(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    Stream stream(own ? ::fdopendir(own.get()) : nullptr);
    if (stream) static_cast<void>(own.release());
    return stream;
}

// FNV-1a (Fowler, Noll, Vo 1991). Directories are not read in the same order everywhere, so names decide.
std::uint32_t hash(std::string_view name) noexcept {
    std::uint32_t value = 2166136261U;
    for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
    return value;
}

bool is_dot(const char* name) noexcept { return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0; }

}  // namespace

TreeRemoval::TreeRemoval(int directory, std::string name, std::atomic<std::uint64_t>& removed, Share share)
    : directory_(directory), name_(std::move(name)), removed_(removed) {
    struct stat status{};
    if (::fstat(directory, &status) == 0) device_ = status.st_dev;
    if (const Stream stream = read_directory(directory)) {
        while (const dirent* entry = ::readdir(stream.get())) {
            if (!is_dot(entry->d_name) && hash(entry->d_name) % share.of == share.number)
                entries_.emplace_back(entry->d_name);
        }
    }
}

void TreeRemoval::work(const Pace& pace) {
    Paths left;
    Walk walk{.pace = pace};
    for (std::size_t i = next_.fetch_add(1); i < entries_.size(); i = next_.fetch_add(1))
        remove(directory_, entries_[i], name_ + "/" + entries_[i], true, 0, left, walk);
    const std::lock_guard lock(mutex_);
    for (std::string& path : left)
        if (left_.size() < kMostLeft) left_.push_back(std::move(path));
}

void TreeRemoval::Walk::count_one() noexcept {
    if (!pace.on()) return;
    const std::uint64_t now = Clock::system().now();
    before = pace.hold(now, {.operations = 1, .bytes = 0, .ticks = elapsed(before, now)});
}

bool TreeRemoval::remove(int parent, const std::string& name, const std::string& path, bool maybe_directory, int depth,
                         Paths& left, Walk& walk) {
    if (::unlinkat(parent, name.c_str(), 0) == 0) {
        removed_.fetch_add(1, std::memory_order_relaxed);
        walk.count_one();
        return true;
    }
    if (errno == ENOENT) return true;
    if (maybe_directory && (errno == EISDIR || errno == EPERM))
        return remove_directory(parent, name, path, depth, left, walk);
    left.push_back(path);
    return false;
}

bool TreeRemoval::remove_directory(int parent, const std::string& name, const std::string& path, int depth, Paths& left,
                                   Walk& walk) {
    const std::size_t left_before = left.size();
    {
        const Descriptor directory(enter_directory(parent, name.c_str()));
        struct stat status{};  // a subvolume of Btrfs is no mount
        if (directory && ::fstat(directory.get(), &status) == 0 && status.st_dev == device_ && depth < kMostLevels)
            empty(directory.get(), path, depth, left, walk);
    }
    if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0) {
        removed_.fetch_add(1, std::memory_order_relaxed);
        walk.count_one();
        return true;
    }
    if (errno == ENOENT) return true;
    if (left.size() == left_before) left.push_back(path);  // otherwise what it holds is named already
    return false;
}

// Some file systems skip entries while others are removed, so it looks again until a look finds none or removes none;
// where look after look finds more, somebody fills the directory faster than it can be emptied.
void TreeRemoval::empty(int directory, const std::string& path, int depth, Paths& left, Walk& walk) {
    Paths left_now;
    std::size_t met_before = SIZE_MAX;
    int growing = 0;
    for (bool progress = true; progress && growing < kMostGrowingLooks;) {
        const Stream stream = read_directory(directory);
        std::size_t met = 0;
        progress = false;
        left_now.clear();
        while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
            if (is_dot(entry->d_name)) continue;
            ++met;
            const bool maybe_directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
            const std::string name = entry->d_name;
            std::string below = path;
            below.append("/").append(name);
            if (remove(directory, name, below, maybe_directory, depth + 1, left_now, walk)) progress = true;
        }
        if (met > met_before) ++growing;
        met_before = met;
    }
    left.insert(left.end(), left_now.begin(), left_now.end());
}

std::vector<std::string> TreeRemoval::left() {
    const std::lock_guard lock(mutex_);
    return left_;
}

}  // namespace strakes
