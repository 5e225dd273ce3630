// Items of a rank: which exist, their names, and their directories in the tree.
#pragma once

#include <algorithm>
#include <array>
#include <cinttypes>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/permutation.hpp"

namespace strakes {

// Items [first, last) of an owner. Each number n in rename_ends renames the items [first, n) to their other name.
struct Items {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t attributed = 0;  // items below this number have an extended attribute
    std::vector<std::uint64_t> rename_ends;

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.first, self.last, self.attributed, self.rename_ends);
    }
};

// Items [first, first + count) of one directory, either all renamed or none.
struct ItemRun {
    std::uint32_t leaf = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    bool renamed = false;
};

// Return the existing items in order, split where the directory or the kind of name changes. The `total` planned items
// are spread evenly over `leaves` directories: leaf l holds [l * total / leaves, (l + 1) * total / leaves).
inline std::vector<ItemRun> runs_of(const Items& items, std::uint64_t total, std::uint32_t leaves) {
    std::vector<std::uint64_t> toggles = items.rename_ends;
    std::ranges::sort(toggles);
    std::vector<ItemRun> runs;
    std::uint64_t at = items.first;
    // The leaf of an item is the largest l with l * total / leaves <= item.
    auto leaf = static_cast<std::uint32_t>(((at + 1) * leaves - 1) / total);
    while (at < items.last) {
        std::uint64_t end = std::min(items.last, (std::uint64_t{leaf} + 1) * total / leaves);
        const auto later = std::ranges::upper_bound(toggles, at);
        if (later != toggles.end()) end = std::min(end, *later);
        if (end > at) {
            runs.push_back({.leaf = leaf, .first = at, .count = end - at, .renamed = (toggles.end() - later) % 2 != 0});
            at = end;
        }
        if (at == (std::uint64_t{leaf} + 1) * total / leaves) ++leaf;
    }
    return runs;
}

// An item's name in a fixed buffer, incremented in place: "f12.000345".
class ItemName {
  public:
    ItemName(bool directory, std::uint32_t owner, std::uint64_t total)
        : letter_(directory ? 'd' : 'f'), renamed_letter_(directory ? 'e' : 'g') {
        // Room for `total` itself, because next() may be called once after the last item.
        const std::string number = std::to_string(total);
        const std::string text = letter_ + std::to_string(owner) + "." + std::string(number.size(), '0');
        digits_ = static_cast<unsigned>(number.size());
        length_ = static_cast<unsigned>(text.size());
        text.copy(text_, sizeof text_ - 1);
    }

    void set(std::uint64_t index, bool renamed) noexcept {
        text_[0] = renamed ? renamed_letter_ : letter_;
        char* digit = text_ + length_;
        for (unsigned i = 0; i < digits_; ++i, index /= 10) *--digit = static_cast<char>('0' + index % 10);
    }
    void next() noexcept {
        char* digit = text_ + length_ - 1;
        while (*digit == '9') *digit-- = '0';
        ++*digit;
    }
    // Return the item's name after one more rename.
    [[nodiscard]] ItemName toggled() const noexcept {
        ItemName other = *this;
        other.text_[0] = text_[0] == letter_ ? renamed_letter_ : letter_;
        return other;
    }
    // Return the name of the item's hard link, which renames do not affect.
    [[nodiscard]] ItemName linked() const noexcept {
        ItemName other = *this;
        other.text_[0] = 'l';
        return other;
    }
    [[nodiscard]] const char* c_str() const noexcept { return text_; }

    [[nodiscard]] const ItemName& item() const noexcept { return *this; }
    // Return the part before the number, which has leading zeros.
    [[nodiscard]] std::string_view stem() const noexcept { return {text_, length_ - digits_}; }
    [[nodiscard]] unsigned digits() const noexcept { return digits_; }
    static constexpr std::size_t kRoom = 32;

  private:
    char text_[kRoom] = {};  // at most a letter, 5 digits of the owner, a dot, 14 digits and a NUL: 22 bytes
    unsigned length_ = 0;
    unsigned digits_ = 0;
    char letter_, renamed_letter_;
};

// An item's path relative to the plan's directory, "items.0.tree/b1/f12.000345", incremented in place.
class ItemBelow {
  public:
    explicit ItemBelow(const ItemName& name) noexcept : name_(name) {}

    // Return whether a directory's path fits. Paths of every valid plan fit: a set's name, an owner, and 16 levels with
    // at most 65,536 leaves.
    [[nodiscard]] static bool fits(std::string_view directory) noexcept { return directory.size() < kMostDirectory; }
    // Set the directory of the items that follow. The directory must fit.
    void enter(std::string_view directory) noexcept {
        directory.copy(text_.data(), kMostDirectory);
        text_[directory.size()] = '/';
        stem_ = directory.size() + 1;
    }
    void set(std::uint64_t index, bool renamed) noexcept {
        name_.set(index, renamed);
        put();
    }
    void next() noexcept {
        name_.next();
        put();
    }
    [[nodiscard]] ItemBelow toggled() const noexcept { return named(name_.toggled()); }
    [[nodiscard]] ItemBelow linked() const noexcept { return named(name_.linked()); }
    [[nodiscard]] const char* c_str() const noexcept { return text_.data(); }
    [[nodiscard]] const ItemName& item() const noexcept { return name_; }

  private:
    static constexpr std::size_t kMostDirectory = 128;

    void put() noexcept { std::memcpy(text_.data() + stem_, name_.c_str(), ItemName::kRoom); }
    [[nodiscard]] ItemBelow named(const ItemName& name) const noexcept {
        ItemBelow other = *this;
        other.name_ = name;
        other.put();
        return other;
    }

    ItemName name_;
    std::size_t stem_ = 0;  // offset of the name in the path
    std::array<char, kMostDirectory + ItemName::kRoom> text_{};
};

// An item's path in the plan's directory, "items.0.tree/b1/f12.000345". The path is formatted for every item, as in
// programs that hold no directory open.
class ItemPath {
  public:
    // `clear`: zero the whole buffer before each path, as mdtest does when it accesses existing items.
    explicit ItemPath(const ItemName& name, bool clear = false) noexcept : name_(name), clear_(clear) {}

    // Return whether this is the path of a directory, with room for the names of items.
    [[nodiscard]] static bool fits(const std::string& directory) noexcept {
        return !directory.empty() && directory.size() + 1 + ItemName::kRoom <= PATH_MAX;
    }
    // Set the directory of the items that follow. The text must fit, and is not copied.
    void enter(const char* directory) noexcept { directory_ = directory; }
    void set(std::uint64_t index, bool renamed) noexcept {
        index_ = index;
        name_.set(index, renamed);
        print();
    }
    void next() noexcept {
        ++index_;
        name_.next();
        print();
    }
    [[nodiscard]] ItemPath toggled() const noexcept { return named(name_.toggled()); }
    [[nodiscard]] ItemPath linked() const noexcept { return named(name_.linked()); }
    [[nodiscard]] const char* c_str() const noexcept { return text_.data(); }
    [[nodiscard]] const ItemName& item() const noexcept { return name_; }

  private:
    void print() noexcept {
        const std::string_view stem = name_.stem();
        if (clear_) text_.fill('\0');
        std::snprintf(text_.data(), PATH_MAX, "%s/%.*s%0*" PRIu64, directory_, static_cast<int>(stem.size()),
                      stem.data(), static_cast<int>(name_.digits()), index_);
    }
    [[nodiscard]] ItemPath named(const ItemName& name) const noexcept {
        ItemPath other(name);
        other.index_ = index_;
        other.directory_ = directory_;
        other.print();
        return other;
    }

    ItemName name_;  // its number is also the number in the path
    bool clear_;
    std::uint64_t index_ = 0;
    const char* directory_ = "";
    std::array<char, std::size_t{2} * PATH_MAX> text_{};
};

// `leaves` holds the open directories of several portions: leaf l of this portion is leaves[l - first_leaf].
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
        std::uint64_t first;
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

// A directory that is not open: its path relative to an open directory.
struct LeafBelow {
    int root;
    std::string path;
};

// The items of a locator in a seeded order, which differs from pass to pass.
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

}  // namespace strakes
