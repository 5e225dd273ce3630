// Workspace: the plan's own directory, inside a directory that strakes created and marked.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "system/descriptor.hpp"
#include "system/failure.hpp"

namespace strakes {

inline constexpr const char* kMarker = ".strakes-marker";
// Prefix of the name of a file next to the plan's directory, followed by the plan's id. The file says where the plan's
// objects are, and exists as long as the objects.
inline constexpr const char* kObjectsNote = ".strakes-objects-";

class Workspace {
  public:
    // Why the directory cannot be used. If refused(), the request is at fault, otherwise the file system.
    struct Fault {
        Failure failure;
        std::string key;  // key of the request that is at fault; empty if no key is
        [[nodiscard]] bool refused() const noexcept { return !key.empty(); }
    };

    // `inside_ceph`: the directory is in a Ceph file system and reached through libcephfs. root() is then invalid.
    // `with_objects`: make() also creates a prefix in the bucket that environment variables name.
    // `identity`: of the directory that strakes made. Any other one in its place is refused.
    explicit Workspace(bool inside_ceph = false, bool with_objects = false, Identity identity = {}) noexcept
        : identity_(identity), inside_ceph_(inside_ceph), with_objects_(with_objects) {}

    // Create directory/id. An existing directory is accepted if `prepared`.
    [[nodiscard]] std::optional<Fault> make(const std::string& directory, const std::string& id, bool prepared = false);

    // Open a directory/id that another process created.
    [[nodiscard]] std::optional<Fault> join(const std::string& directory, const std::string& id);

    [[nodiscard]] bool inside_ceph() const noexcept { return inside_ceph_; }
    [[nodiscard]] bool with_objects() const noexcept { return with_objects_; }
    // Remove all objects of the plan, then the note about the objects.
    [[nodiscard]] std::optional<Failure> remove_objects(std::atomic<std::uint64_t>& removed);
    // Close the descriptors, so that another process can remove the directory.
    void close() {
        root_ = Descriptor();
        parent_ = Descriptor();
    }

    [[nodiscard]] int root() const noexcept { return root_.get(); }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    // Remove directory/id, which must be empty.
    [[nodiscard]] std::optional<Failure> remove();

  private:
    [[nodiscard]] std::optional<Fault> make_here(const std::string& directory, const std::string& id, bool prepared);
    [[nodiscard]] std::optional<Fault> make_objects(const std::string& directory, const std::string& id);
    [[nodiscard]] std::optional<Fault> join_here(const std::string& directory, const std::string& id);
    [[nodiscard]] std::optional<Fault> open_parent(const std::string& directory);
    // `owner`: the user that files of this process belong to. Files of another user, except root, were planted.
    [[nodiscard]] std::optional<Fault> open_root(const std::string& id, std::optional<uid_t> owner);

    Descriptor parent_, root_;
    Identity identity_;
    uid_t above_ = 0;  // owner of the directory that has the plan's directory
    std::string name_;
    bool inside_ceph_, with_objects_;
    bool objects_there_ = false;
};

class Workspaces {
  public:
    using Fault = Workspace::Fault;

    // Uses `id` in each of the directories. A directory in a Ceph file system or a bucket must be the only directory.
    Workspaces(std::vector<std::string> directories, const std::vector<Identity>& identities, std::string id,
               bool inside_ceph, bool with_objects);

    // The same as in Workspace, for all directories. If make() fails, no directory remains.
    [[nodiscard]] std::optional<Fault> make(bool prepared);
    [[nodiscard]] std::optional<Fault> join();
    void close();
    [[nodiscard]] std::optional<Failure> remove();

    [[nodiscard]] std::size_t count() const noexcept { return all_.size(); }
    [[nodiscard]] Workspace& first() noexcept { return all_.front(); }
    [[nodiscard]] int root(std::uint32_t rank) const noexcept { return all_[rank % all_.size()].root(); }
    // Name for messages: relative to the request's directory in the first directory, absolute in the others.
    [[nodiscard]] const std::string& name(std::uint32_t rank) const noexcept { return names_[rank % names_.size()]; }

  private:
    [[nodiscard]] std::optional<Fault> named(std::size_t number, std::optional<Fault> fault) const;

    std::vector<std::string> directories_;
    std::string id_;
    std::vector<Workspace> all_;
    std::vector<std::string> names_;
};

}  // namespace strakes
