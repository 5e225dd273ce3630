// The tree of directories that holds a set's items: made and opened outside timed sections.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/workload.hpp"

namespace strakes {

template <class Io>
class ItemTree {
  public:
    using Handle = typename Io::Handle;  // NOLINT(readability-redundant-typename): older Clang asks for it

    // The tree of one owner, or the shared one, as a rank sees it.
    ItemTree(const PhaseSetting& setting, const MetadataPhase& phase, std::uint32_t owner, std::uint32_t rank);

    [[nodiscard]] std::uint32_t leaves() const noexcept { return leaves_; }

    // All directories, unless the ranks are to halt; those that are there already are taken.
    [[nodiscard]] Workload::Outcome make() const;

    // Descriptors of the leaves with numbers [first, last).
    [[nodiscard]] Workload::Outcome open(std::uint32_t first, std::uint32_t last, std::vector<Handle>& into) const;

    // From the plan's directory.
    [[nodiscard]] std::string entry_of_leaf(std::uint32_t leaf) const;
    // Of an owner, for messages; needs no place to stand in.
    [[nodiscard]] std::string path_of_leaf(std::uint32_t leaf) const { return setting_.path_of(entry_of_leaf(leaf)); }

  private:
    // Leaves below a directory at `level`.
    [[nodiscard]] std::uint32_t leaves_below(std::uint32_t level) const noexcept;
    [[nodiscard]] Workload::Outcome make_below(int directory, std::uint32_t level) const;
    [[nodiscard]] Workload::Outcome open_below(Handle directory, std::uint32_t level, std::uint32_t leaf,
                                               std::uint32_t first, std::uint32_t last,
                                               std::vector<Handle>& into) const;
    [[nodiscard]] Workload::Outcome make_one(int parent, const std::string& name, std::uint32_t level) const;
    [[nodiscard]] Workload::Outcome open_one(int parent, const std::string& name, Handle& into) const;

    const PhaseSetting& setting_;
    std::string name_;
    std::uint32_t rank_;
    std::uint32_t depth_, branch_, leaves_;
};

}  // namespace strakes
