#include "workspace/workspace.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "system/enter.hpp"
#ifdef STRAKES_CEPHFS
#include "backend/ceph.hpp"
#endif
#ifdef STRAKES_S3
#include "backend/s3.hpp"
#endif

namespace strakes {

namespace {

constexpr int kOpen = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr const char* kReplaced =
    "Another user may have replaced the directory that strakes made. Measure in a directory whose owner you trust.";

Workspace::Fault fault(std::string_view call, const std::string& path, int error, std::string what, std::string key,
                       std::string remedy) {
    Workspace::Fault result{call_failure(call, path, error), std::move(key)};
    result.failure.what = std::move(what);
    if (!remedy.empty()) result.failure.remedy = std::move(remedy);
    return result;
}

std::optional<Workspace::Fault> no_marker(std::string_view call, int error) {
    return fault(call, kMarker, error, "the directory has no marker of strakes", "directory",
                 "Let strakes make the directory; it works in no other.");
}

// Whether the directory is called strakes-RUN and its marker names another run: somebody exchanged two workspaces.
bool is_of_another_run(int directory, std::string_view path) {
    constexpr std::string_view kPrefix = "strakes-";
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (!name.starts_with(kPrefix) || name.find_first_of("0123456789") != kPrefix.size()) return false;
    const Descriptor file(::openat(directory, kMarker, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    std::array<char, 4096> text{};
    const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : 0;
    const std::string run = "\"run\": \"" + std::string(name.substr(kPrefix.size())) + '"';
    // If the marker cannot be read, the first phase reports why.
    return size > 0 &&
           std::string_view(text.data(), static_cast<std::size_t>(size)).find(run) == std::string_view::npos;
}

Workspace::Fault exists_or_fails(const std::string& id, int error) {
    return fault("mkdir", id, error, "the plan's directory cannot be made", error == EEXIST ? "id" : "",
                 error == EEXIST ? "Use a different id for each plan." : "");
}

#ifdef STRAKES_CEPHFS
std::optional<Workspace::Fault> ceph_fault(const CephPlace::Outcome& outcome, const std::string& id) {
    const auto& [call, error] = outcome.step;
    if (error == 0) return std::nullopt;
    if (outcome.marker) return no_marker(call, error);
    if (outcome.path == id) return exists_or_fails(id, error);
    if (error == EPERM && std::string_view(call) == "ceph_ll_walk")
        return fault(call, outcome.path, error, "the directory belongs to another user", "directory", kReplaced);
    if ((error == ENOENT || error == ENOTDIR) && std::string_view(call) == "ceph_ll_walk") {
        return fault(call, outcome.path, error, "the directory cannot be used", "directory",
                     "Give an existing directory inside the Ceph file system, as seen from its root.");
    }
    return fault(
        call, outcome.path, error, "the Ceph file system cannot be reached", "",
        "Set CEPH_CONF (and CEPH_ARGS, such as --id NAME) to a configuration and a key of a cluster that answers.");
}
#endif

}  // namespace

std::optional<Workspace::Fault> Workspace::make(const std::string& directory, const std::string& id, bool prepared) {
#ifdef STRAKES_CEPHFS
    name_ = id;
    if (inside_ceph_) {
        const CephPlace::Outcome outcome = CephPlace::make(directory, id, kMarker, identity_.inode);
        const bool taken = prepared && outcome.path == id && outcome.step.error == EEXIST;
        return taken ? std::nullopt : ceph_fault(outcome, id);
    }
#endif
    if (auto failed = make_here(directory, id, prepared)) return failed;
    auto failed = with_objects_ ? make_objects(directory, id) : std::nullopt;
    if (failed && !prepared) ::unlinkat(parent_.get(), id.c_str(), AT_REMOVEDIR);
    return failed;
}

// Write the note before the first object, so that a killed plan leaves no unknown objects.
std::optional<Workspace::Fault> Workspace::make_objects([[maybe_unused]] const std::string& directory,
                                                        [[maybe_unused]] const std::string& id) {
#ifdef STRAKES_S3
    S3Place::choose(directory, id);
    if (auto failure = S3Place::look()) return Fault{*failure, failure->error_name == "EEXIST" ? "id" : ""};
    const std::string note = kObjectsNote + id, text = S3Place::note();
    ::unlinkat(parent_.get(), note.c_str(), 0);
    const Descriptor file(::openat(parent_.get(), note.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
        return fault("write", note, errno, "the note about the plan's objects cannot be written", "", "");
    if (auto failure = S3Place::make()) {
        std::atomic<std::uint64_t> removed{0};
        static_cast<void>(remove_objects(removed));  // A store may keep a marker that it refused.
        return Fault{std::move(*failure), ""};
    }
    objects_there_ = true;
#endif
    return std::nullopt;
}

std::optional<Failure> Workspace::remove_objects([[maybe_unused]] std::atomic<std::uint64_t>& removed) {
#ifdef STRAKES_S3
    if (auto failure = S3Place::empty(removed)) return failure;
    ::unlinkat(parent_.get(), (kObjectsNote + name_).c_str(), 0);
    objects_there_ = false;
#endif
    return std::nullopt;
}

std::optional<Workspace::Fault> Workspace::make_here(const std::string& directory, const std::string& id,
                                                     bool prepared) {
    if (auto failed = open_parent(directory)) return failed;
    const bool made = ::mkdirat(parent_.get(), id.c_str(), 0700) == 0;
    if (!made && (!prepared || errno != EEXIST)) return exists_or_fails(id, errno);
    // NFS may map root to another user (root_squash). The owner of a new directory shows which user that is.
    auto planted = open_root(id, made ? std::nullopt : std::optional(::geteuid()));
    if (planted && made) ::unlinkat(parent_.get(), id.c_str(), AT_REMOVEDIR);
    return planted;
}

std::optional<Workspace::Fault> Workspace::join(const std::string& directory, const std::string& id) {
    auto failed = join_here(directory, id);
    if (failed && failed->failure.error_name != "ESTALE") {
        failed->failure.what = "a node does not see the directory that another node uses";
        failed->failure.remedy = "Give a directory on a file system that all nodes have mounted at the same place.";
        failed->key = "directory";
    }
    return failed;
}

std::optional<Workspace::Fault> Workspace::join_here(const std::string& directory, const std::string& id) {
#ifdef STRAKES_CEPHFS
    name_ = id;
    if (inside_ceph_) return ceph_fault(CephPlace::join(directory, id, kMarker, identity_.inode), id);
#endif
    auto failed = open_parent(directory);
    if (failed) return failed;
    // Rank 0 has checked the owner, so expect the owner of the parent directory.
    failed = open_root(id, above_);
#ifdef STRAKES_S3
    if (failed || !with_objects_) return failed;
    S3Place::choose(directory, id);
    if (auto failure = S3Place::join()) return Fault{std::move(*failure), ""};
#endif
    return failed;
}

std::optional<Workspace::Fault> Workspace::open_parent(const std::string& directory) {
    parent_ = Descriptor(::open(directory.c_str(), kOpen));
    if (!parent_)
        return fault("open", directory, errno, "the directory cannot be used", "directory",
                     "Give an existing directory that is not a symbolic link.");
    struct stat marker{};
    struct stat opened{};
    if (::fstat(parent_.get(), &opened) != 0)
        return fault("fstat", directory, errno, "the directory cannot be used", "", "");
    if (!identity_.is_of(opened))
        return fault("fstat", directory, ESTALE, "the directory was replaced", "directory", kReplaced);
    above_ = opened.st_uid;
    if (::fstatat(parent_.get(), kMarker, &marker, AT_SYMLINK_NOFOLLOW) != 0) return no_marker("stat", errno);
    if (!S_ISREG(marker.st_mode))
        return fault("stat", kMarker, EINVAL, "the directory's marker is not a regular file", "directory",
                     "Let strakes make the directory; it works in no other.");
    if (is_of_another_run(parent_.get(), directory))
        return fault("read", kMarker, EPERM, "the directory belongs to another run", "directory",
                     "Another user may have moved it here. Measure in a directory whose owner you trust.");
    return std::nullopt;
}

std::optional<Workspace::Fault> Workspace::open_root(const std::string& id, std::optional<uid_t> owner) {
    name_ = id;
    const int opened = enter_directory(parent_.get(), id.c_str());
    if (opened < 0) return fault("open", id, -opened, "the plan's directory cannot be opened", "", "");
    root_ = Descriptor(opened);
    struct stat root{};
    struct stat above{};
    struct stat marker{};
    if (::fstat(opened, &root) != 0 || ::fstat(parent_.get(), &above) != 0 ||
        ::fstatat(parent_.get(), kMarker, &marker, AT_SYMLINK_NOFOLLOW) != 0)
        return fault("stat", id, errno, "the plan's directory cannot be used", "", "");
    for (const uid_t user : {root.st_uid, above.st_uid, marker.st_uid}) {
        if (user == owner.value_or(root.st_uid) || user == 0) continue;
        return fault("stat", kMarker, EPERM, "the directory belongs to another user", "directory", kReplaced);
    }
    return std::nullopt;
}

std::optional<Failure> Workspace::remove() {
#ifdef STRAKES_CEPHFS
    if (inside_ceph_) {
        const FileStep step = CephPlace::remove();
        return step.error == 0 ? std::nullopt : std::optional(call_failure(step.call, name_, step.error));
    }
#endif
    std::atomic<std::uint64_t> removed{0};
    if (objects_there_)
        if (auto failure = remove_objects(removed)) return failure;
    root_ = Descriptor();
    if (::unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return std::nullopt;
    return call_failure("rmdir", name_, errno);
}

Workspaces::Workspaces(std::vector<std::string> directories, const std::vector<Identity>& identities, std::string id,
                       bool inside_ceph, bool with_objects)
    : directories_(std::move(directories)), id_(std::move(id)) {
    for (const std::string& directory : directories_) {
        all_.emplace_back(inside_ceph, with_objects, identities.at(all_.size()));
        names_.push_back(names_.empty() ? id_ : directory + "/" + id_);
    }
}

std::optional<Workspaces::Fault> Workspaces::make(bool prepared) {
    for (std::size_t made = 0; made < all_.size(); ++made) {
        std::optional<Fault> fault = all_[made].make(directories_[made], id_, prepared);
        if (!fault) continue;
        fault = named(made, std::move(fault));
        while (made-- > 0) static_cast<void>(all_[made].remove());
        return fault;
    }
    return std::nullopt;
}

std::optional<Workspaces::Fault> Workspaces::join() {
    for (std::size_t i = 0; i < all_.size(); ++i)
        if (auto fault = named(i, all_[i].join(directories_[i], id_))) return fault;
    return std::nullopt;
}

// Make the path of a fault absolute, unless it is in the first directory, which the request names.
std::optional<Workspaces::Fault> Workspaces::named(std::size_t number, std::optional<Fault> fault) const {
    if (!fault || number == 0) return fault;
    std::string& path = fault->failure.path;
    if (!path.starts_with('/')) path = directories_[number] + "/" + path;
    if (fault->key == "directory") fault->key = "beside";
    return fault;
}

void Workspaces::close() {
    for (Workspace& one : all_) one.close();
}

std::optional<Failure> Workspaces::remove() {
    std::optional<Failure> first;
    for (std::size_t i = 0; i < all_.size(); ++i) {
        std::optional<Failure> failure = all_[i].remove();
        if (failure && i > 0) failure->path = names_[i];
        if (!first) first = std::move(failure);
    }
    return first;
}

}  // namespace strakes
