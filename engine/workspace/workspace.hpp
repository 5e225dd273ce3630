// The plan's own directory inside a directory that strakes made and marked.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "system/descriptor.hpp"
#include "system/failure.hpp"

namespace strakes {

inline constexpr const char* kMarker = ".strakes-marker";
// Of the file beside a plan's directory that says where its objects are, as long as there are any; its id follows.
inline constexpr const char* kObjectsNote = ".strakes-objects-";

class Workspace {
  public:
    // Why there is none. Refused: the request is at fault; otherwise the target is.
    struct Fault {
        Failure failure;
        std::string key;  // of the request, where that is at fault
        [[nodiscard]] bool refused() const noexcept { return !key.empty(); }
    };

    // `inside_ceph`: the directory is that of a Ceph file system, reached through libcephfs; there is no root() then.
    // `with_objects`: a prefix of the same name in the bucket of the environment is made as well.
    explicit Workspace(bool inside_ceph = false, bool with_objects = false) noexcept
        : inside_ceph_(inside_ceph), with_objects_(with_objects) {}

    // Makes directory/id; one that is `prepared` is taken where it is there. Nothing comes back on success.
    [[nodiscard]] std::optional<Fault> make(const std::string& directory, const std::string& id, bool prepared = false);

    // Opens the directory/id that another process made.
    [[nodiscard]] std::optional<Fault> join(const std::string& directory, const std::string& id);

    [[nodiscard]] bool inside_ceph() const noexcept { return inside_ceph_; }
    [[nodiscard]] bool with_objects() const noexcept { return with_objects_; }
    // Removes all objects of the plan, and the note about them. What went wrong comes back.
    [[nodiscard]] std::optional<Failure> remove_objects(std::atomic<std::uint64_t>& removed);
    // Gives up the descriptors, so that another process can remove the directory.
    void close() {
        root_ = Descriptor();
        parent_ = Descriptor();
    }

    [[nodiscard]] int root() const noexcept { return root_.get(); }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    // Removes directory/id, which must be empty by now, or says why it could not.
    [[nodiscard]] std::optional<Failure> remove();

  private:
    [[nodiscard]] std::optional<Fault> make_here(const std::string& directory, const std::string& id, bool prepared);
    [[nodiscard]] std::optional<Fault> make_objects(const std::string& directory, const std::string& id);
    [[nodiscard]] std::optional<Fault> join_here(const std::string& directory, const std::string& id);
    [[nodiscard]] std::optional<Fault> open_parent(const std::string& directory);
    // `owner`: of what this process makes there; whatever belongs to somebody else was planted.
    [[nodiscard]] std::optional<Fault> open_root(const std::string& id, std::optional<uid_t> owner);

    Descriptor parent_, root_;
    std::string name_;
    bool inside_ceph_, with_objects_;
    bool objects_there_ = false;
};

}  // namespace strakes
