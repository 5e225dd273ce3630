// The plan's directory, or one in each of several file systems (or mounts of one), which the ranks take in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workspace/workspace.hpp"

namespace strakes {

class Workspaces {
  public:
    using Fault = Workspace::Fault;

    // `id` in each of the directories; the first one's may be inside a Ceph file system or have objects, and is alone
    // then.
    Workspaces(std::vector<std::string> directories, std::string id, bool inside_ceph, bool with_objects);

    // As Workspace does; all of them or none.
    [[nodiscard]] std::optional<Fault> make(bool prepared);
    [[nodiscard]] std::optional<Fault> join();
    void close();
    // All of them, or why the first that is left could not be.
    [[nodiscard]] std::optional<Failure> remove();

    [[nodiscard]] std::size_t count() const noexcept { return all_.size(); }
    [[nodiscard]] Workspace& first() noexcept { return all_.front(); }
    // Of the one that a rank works in.
    [[nodiscard]] int root(std::uint32_t rank) const noexcept { return all_[rank % all_.size()].root(); }
    // For messages: relative to the request's directory in the first one, absolute in others.
    [[nodiscard]] const std::string& name(std::uint32_t rank) const noexcept { return names_[rank % names_.size()]; }

  private:
    [[nodiscard]] std::optional<Fault> named(std::size_t number, std::optional<Fault> fault) const;

    std::vector<std::string> directories_;
    std::string id_;
    std::vector<Workspace> all_;
    std::vector<std::string> names_;
};

}  // namespace strakes
