// Workspaces: the plan's directory in one or several file systems (or mounts of one), assigned to ranks round-robin.
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

    // Uses `id` in each of the directories. A Ceph file system or a bucket must be the only one.
    Workspaces(std::vector<std::string> directories, std::string id, bool inside_ceph, bool with_objects);

    // As in Workspace, for all directories. If make() fails, no directory remains.
    [[nodiscard]] std::optional<Fault> make(bool prepared);
    [[nodiscard]] std::optional<Fault> join();
    void close();
    // Remove all directories. Return the first failure.
    [[nodiscard]] std::optional<Failure> remove();

    [[nodiscard]] std::size_t count() const noexcept { return all_.size(); }
    [[nodiscard]] Workspace& first() noexcept { return all_.front(); }
    // Descriptor of the directory of a rank.
    [[nodiscard]] int root(std::uint32_t rank) const noexcept { return all_[rank % all_.size()].root(); }
    // Name for messages: relative to the request's directory in the first one, absolute in the others.
    [[nodiscard]] const std::string& name(std::uint32_t rank) const noexcept { return names_[rank % names_.size()]; }

  private:
    [[nodiscard]] std::optional<Fault> named(std::size_t number, std::optional<Fault> fault) const;

    std::vector<std::string> directories_;
    std::string id_;
    std::vector<Workspace> all_;
    std::vector<std::string> names_;
};

}  // namespace strakes
