// The items of one owner that a rank works on, and iteration over the items of several owners.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "workload/items.hpp"
#include "workload/permutation.hpp"

namespace strakes {

// `leaves` holds the open directories of several portions: leaf l of this one is leaves[l - first_leaf].
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

// Finds an item of several portions by its number in their common order.
class ItemLocator {
  public:
    struct Stretch {
        std::uint64_t first;  // number of its first item
        const ItemPortion* portion;
        const ItemRun* run;
    };

    ItemLocator() = default;
    // Keeps pointers into `portions`.
    explicit ItemLocator(const std::vector<ItemPortion>& portions) {
        for (const ItemPortion& portion : portions) {
            for (const ItemRun& run : portion.runs) {
                stretches_.push_back({.first = count_, .portion = &portion, .run = &run});
                count_ += run.count;
            }
        }
    }

    // `number` must be less than count().
    [[nodiscard]] const Stretch& holding(std::uint64_t number) const noexcept {
        return *std::prev(std::ranges::upper_bound(stretches_, number, {}, &Stretch::first));
    }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

  private:
    std::vector<Stretch> stretches_;
    std::uint64_t count_ = 0;
};

// A directory that is not open: its path relative to an open one.
struct LeafBelow {
    int root;
    std::string path;
};

// The items of a locator in seeded order, a different one in each pass.
class ShuffledItems {
  public:
    ShuffledItems(const ItemLocator& locator, std::uint64_t key) noexcept
        : locator_(&locator), first_(std::max<std::uint64_t>(locator.count(), 1), key), order_(first_) {}
    void restart() noexcept {
        order_ = first_.again(++pass_);
        at_ = 0;
    }
    struct Item {
        const ItemPortion* portion;
        const ItemRun* run;
        std::uint64_t index;
    };
    [[nodiscard]] Item next() noexcept {
        const std::uint64_t number = order_(at_++);
        const ItemLocator::Stretch& stretch = locator_->holding(number);
        return {stretch.portion, stretch.run, stretch.run->first + number - stretch.first};
    }

  private:
    const ItemLocator* locator_;
    Permutation first_, order_;
    std::uint64_t at_ = 0, pass_ = 0;
};

// Iteration over items, for loops with several in flight.
template <class Leaf>
class ItemCursor {
  public:
    // In the order of `shuffled`, if it has a value.
    ItemCursor(const std::vector<ItemPortion>& portions, const std::vector<Leaf>& leaves,
               std::optional<ShuffledItems> shuffled) noexcept
        : portions_(portions), leaves_(leaves), shuffled_(shuffled) {}

    void restart() noexcept {
        portion_ = run_ = at_ = 0;
        if (shuffled_) shuffled_->restart();
    }
    // Go to the next item. At least one must be left. No portion and no run is empty.
    void next() noexcept {
        if (shuffled_) {
            const ShuffledItems::Item item = shuffled_->next();
            return come_to(*item.portion, *item.run, item.index);
        }
        const ItemPortion& portion = portions_[portion_];
        const ItemRun& run = portion.runs[run_];
        come_to(portion, run, run.first + at_);
        if (++at_ < run.count) return;
        at_ = 0;
        if (++run_ < portion.runs.size()) return;
        run_ = 0;
        ++portion_;
    }

    // The current item.
    std::uint32_t owner = 0, leaf = 0;
    int directory = -1;
    std::string_view below;  // path of its directory, relative to `directory`; empty: `directory` itself
    std::uint64_t index = 0;
    bool renamed = false;
    const ItemName* name = nullptr;

  private:
    void come_to(const ItemPortion& portion, const ItemRun& run, std::uint64_t number) noexcept {
        owner = portion.owner;
        leaf = run.leaf;
        const Leaf& place = portion.leaf(leaves_, run);
        if constexpr (std::is_same_v<Leaf, LeafBelow>) {
            directory = place.root;
            below = place.path;
        } else {
            directory = place.get();
        }
        index = number;
        renamed = run.renamed;
        name = &portion.name;
    }

    const std::vector<ItemPortion>& portions_;
    const std::vector<Leaf>& leaves_;
    std::optional<ShuffledItems> shuffled_;
    std::size_t portion_ = 0, run_ = 0;
    std::uint64_t at_ = 0;
};

}  // namespace strakes
