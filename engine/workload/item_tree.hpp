// The directory tree of a set's items, created and opened outside timed sections: every directory above the lowest
// level has the subdirectories b0 .. b<branch - 1>.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "workload/workload.hpp"

namespace strakes {

template <class Io>
class ItemTree {
  public:
    using Handle = typename Io::Handle;  // NOLINT(readability-redundant-typename): older Clang asks for it

    // A rank's access to the tree of one owner, or to the tree that all ranks share.
    ItemTree(const PhaseSetting& setting, const MetadataPhase& phase, std::uint32_t owner, std::uint32_t rank)
        : setting_(setting),
          name_(entry_of(phase, owner)),
          rank_(rank),
          depth_(phase.depth),
          branch_(phase.branch),
          leaves_(leaves_below(0)) {}

    [[nodiscard]] std::uint32_t leaves() const noexcept { return leaves_; }

    // Create all directories unless a halt comes first. Existing directories are accepted.
    [[nodiscard]] Workload::Outcome make() const { return make_one(Io::root(setting_.root, rank_), name_, 0); }

    [[nodiscard]] Workload::Outcome open(std::uint32_t first, std::uint32_t last, std::vector<Handle>& into) const {
        Handle top;
        if (Workload::Outcome failure = open_one(Io::root(setting_.root, rank_), name_, top)) return failure;
        into.reserve(last - first);
        return open_below(std::move(top), 0, 0, first, last, into);
    }

    // Return the path of a leaf relative to the plan's directory.
    [[nodiscard]] std::string entry_of_leaf(std::uint32_t leaf) const {
        std::string path;
        for (std::uint32_t level = 0; level < depth_; ++level, leaf /= branch_)
            path.insert(0, "/b" + std::to_string(leaf % branch_));
        return name_ + path;
    }
    [[nodiscard]] std::string path_of_leaf(std::uint32_t leaf) const { return setting_.path_of(entry_of_leaf(leaf)); }

  private:
    [[nodiscard]] std::uint32_t leaves_below(std::uint32_t level) const noexcept {
        std::uint32_t leaves = 1;
        for (; level < depth_; ++level) leaves *= branch_;
        return leaves;
    }
    [[nodiscard]] Workload::Outcome make_one(int parent, const std::string& name, std::uint32_t level) const {
        const int error = Io::make_directory(parent, name.c_str());
        if (error != 0 && error != EEXIST) return call_failure("mkdir", setting_.path_of(name_), error);
        if (level == depth_) return std::nullopt;
        Handle directory;
        if (Workload::Outcome failure = open_one(parent, name, directory)) return failure;
        return make_below(directory.get(), level);
    }
    [[nodiscard]] Workload::Outcome make_below(int directory, std::uint32_t level) const {
        for (std::uint32_t i = 0; i < branch_ && !setting_.halted(); ++i)
            if (Workload::Outcome failure = make_one(directory, "b" + std::to_string(i), level + 1)) return failure;
        return std::nullopt;
    }
    [[nodiscard]] Workload::Outcome open_below(Handle directory, std::uint32_t level, std::uint32_t leaf,
                                               std::uint32_t first, std::uint32_t last,
                                               std::vector<Handle>& into) const {
        if (level == depth_) {
            into.push_back(std::move(directory));
            return std::nullopt;
        }
        const std::uint32_t width = leaves_below(level + 1);
        for (std::uint32_t i = 0; i < branch_; ++i, leaf += width) {
            if (leaf + width <= first || leaf >= last) continue;
            Handle below;
            Workload::Outcome failure = open_one(directory.get(), "b" + std::to_string(i), below);
            if (!failure) failure = open_below(std::move(below), level + 1, leaf, first, last, into);
            if (failure) return failure;
        }
        return std::nullopt;
    }
    [[nodiscard]] Workload::Outcome open_one(int parent, const std::string& name, Handle& into) const {
        const auto [descriptor, error] = Io::enter(parent, name.c_str());
        if (error != 0) return call_failure("open", setting_.path_of(name_), error);
        into = Handle(descriptor);
        return std::nullopt;
    }

    const PhaseSetting& setting_;
    std::string name_;
    std::uint32_t rank_;
    std::uint32_t depth_, branch_, leaves_;
};

}  // namespace strakes
