// Checks the marker, makes and removes the plan's directory.
#include "workspace/workspace.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace strakes {

namespace {

constexpr int kOpen = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Workspace::Fault fault(std::string_view call, const std::string& path, int error, std::string what, std::string key,
                       std::string remedy) {
    Workspace::Fault result{call_failure(call, path, error), std::move(key)};
    result.failure.what = std::move(what);
    if (!remedy.empty()) result.failure.remedy = std::move(remedy);
    return result;
}

}  // namespace

std::optional<Workspace::Fault> Workspace::make(const std::string& directory, const std::string& id, bool prepared) {
    if (auto failed = open_parent(directory)) return failed;
    if (::mkdirat(parent_.get(), id.c_str(), 0700) != 0 && (!prepared || errno != EEXIST)) {
        const int error = errno;
        return fault("mkdir", id, error, "the plan's directory cannot be made", error == EEXIST ? "id" : "",
                     error == EEXIST ? "Use an id of its own for every plan." : "");
    }
    return open_root(id);
}

std::optional<Workspace::Fault> Workspace::join(const std::string& directory, const std::string& id) {
    constexpr std::string_view kRemedy = "Give a directory of a file system that all nodes have mounted in one place.";
    auto failed = open_parent(directory);
    if (!failed) failed = open_root(id);
    if (failed) {
        failed->failure.what = "a node does not see the directory that another node uses";
        failed->failure.remedy = kRemedy;
        failed->key = "directory";
    }
    return failed;
}

std::optional<Workspace::Fault> Workspace::open_parent(const std::string& directory) {
    parent_ = Descriptor(::open(directory.c_str(), kOpen));
    if (!parent_)
        return fault("open", directory, errno, "the directory cannot be used", "directory",
                     "Give an existing directory that is no symbolic link.");
    struct stat marker{};
    if (::fstatat(parent_.get(), kMarker, &marker, AT_SYMLINK_NOFOLLOW) != 0)
        return fault("stat", kMarker, errno, "the directory carries no marker of strakes", "directory",
                     "Let strakes make the directory; it works in no other.");
    if (!S_ISREG(marker.st_mode))
        return fault("stat", kMarker, EINVAL, "the directory's marker is not a regular file", "directory",
                     "Let strakes make the directory; it works in no other.");
    return std::nullopt;
}

std::optional<Workspace::Fault> Workspace::open_root(const std::string& id) {
    name_ = id;
    root_ = Descriptor(::openat(parent_.get(), id.c_str(), kOpen));
    struct stat above{};
    struct stat own{};
    if (!root_ || ::fstat(parent_.get(), &above) != 0 || ::fstat(root_.get(), &own) != 0)
        return fault("open", id, errno, "the plan's directory cannot be opened", "", "");
    if (above.st_dev != own.st_dev)
        return fault("open", id, EXDEV, "the plan's directory is not the one that was made", "", "");
    return std::nullopt;
}

bool Workspace::remove() {
    root_ = Descriptor();
    return ::unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
}

}  // namespace strakes
