// Creates directories in order, and removes them again if a later one cannot be created.
#include "workspace/workspaces.hpp"

#include <utility>

namespace strakes {

Workspaces::Workspaces(std::vector<std::string> directories, std::string id, bool inside_ceph, bool with_objects)
    : directories_(std::move(directories)), id_(std::move(id)) {
    for (const std::string& directory : directories_) {
        all_.emplace_back(inside_ceph, with_objects);
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
