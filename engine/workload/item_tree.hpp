// The directory tree of a set's items, created and opened outside timed sections.
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

    // The tree of one owner, or the shared one, as accessed by a rank.
    ItemTree(const PhaseSetting& setting, const MetadataPhase& phase, std::uint32_t owner, std::uint32_t rank);

    [[nodiscard]] std::uint32_t leaves() const noexcept { return leaves_; }

    // Create all directories unless a halt comes first. Existing ones are accepted.
    [[nodiscard]] Workload::Outcome make() const;

    // Open the leaves [first, last) and append them to `into`.
    [[nodiscard]] Workload::Outcome open(std::uint32_t first, std::uint32_t last, std::vector<Handle>& into) const;

    // Return the path of a leaf relative to the plan's directory.
    [[nodiscard]] std::string entry_of_leaf(std::uint32_t leaf) const;
    // Return the path of a leaf for messages.
    [[nodiscard]] std::string path_of_leaf(std::uint32_t leaf) const { return setting_.path_of(entry_of_leaf(leaf)); }

  private:
    // Return the number of leaves below a directory at `level`.
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
