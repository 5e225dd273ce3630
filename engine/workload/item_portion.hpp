// The items of one owner that a rank works on, and going through all of them in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "system/descriptor.hpp"
#include "workload/items.hpp"

namespace strakes {

// Leaf l is leaves[l - first_leaf] of those that are open.
struct ItemPortion {
    std::uint32_t owner;
    ItemName name;
    std::vector<ItemRun> runs;
    std::ptrdiff_t first_leaf;

    template <class Leaf>
    [[nodiscard]] const Leaf& leaf(const std::vector<Leaf>& leaves, const ItemRun& run) const noexcept {
        return leaves[static_cast<std::size_t>(run.leaf - first_leaf)];
    }
};

// One item after the other, for loops that have several at a time.
class ItemCursor {
  public:
    ItemCursor(const std::vector<ItemPortion>& portions, const std::vector<Descriptor>& leaves) noexcept
        : portions_(portions), leaves_(leaves) {}

    void restart() noexcept { portion_ = run_ = at_ = 0; }
    // Only while items are left; no portion and no run is empty.
    void next() noexcept {
        const ItemPortion& portion = portions_[portion_];
        const ItemRun& run = portion.runs[run_];
        owner = portion.owner;
        leaf = run.leaf;
        directory = portion.leaf(leaves_, run).get();
        index = run.first + at_;
        renamed = run.renamed;
        name = &portion.name;
        if (++at_ < run.count) return;
        at_ = 0;
        if (++run_ < portion.runs.size()) return;
        run_ = 0;
        ++portion_;
    }

    // The item last come to.
    std::uint32_t owner = 0, leaf = 0;
    int directory = -1;
    std::uint64_t index = 0;
    bool renamed = false;
    const ItemName* name = nullptr;

  private:
    const std::vector<ItemPortion>& portions_;
    const std::vector<Descriptor>& leaves_;
    std::size_t portion_ = 0, run_ = 0;
    std::uint64_t at_ = 0;
};

}  // namespace strakes
