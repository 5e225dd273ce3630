// Which items of a rank exist, what they are called, and in which directories of the tree they are.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace strakes {

// The items [first, last) of one owner exist. Each rename toggled the names of the items from `first` up to its end.
struct Items {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::vector<std::uint64_t> rename_ends;
};

// Items [first, first + count) of one directory, all with the same kind of name.
struct ItemRun {
    std::uint32_t leaf = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    bool renamed = false;
};

// The existing items in order, cut where the directory or the kind of name changes. `total` items were planned, spread
// evenly over `leaves` directories: leaf l holds [l * total / leaves, (l + 1) * total / leaves).
std::vector<ItemRun> runs_of(const Items& items, std::uint64_t total, std::uint32_t leaves);

// A name in a fixed buffer, counted up in place: "f12.000345".
class ItemName {
  public:
    ItemName(bool directory, std::uint32_t owner, std::uint64_t total);

    void set(std::uint64_t index, bool renamed) noexcept;
    void next() noexcept {
        char* digit = text_ + length_ - 1;
        while (*digit == '9') *digit-- = '0';
        ++*digit;
    }
    // The same item after a rename.
    [[nodiscard]] ItemName toggled() const noexcept {
        ItemName other = *this;
        other.text_[0] = text_[0] == letter_ ? renamed_letter_ : letter_;
        return other;
    }
    [[nodiscard]] const char* c_str() const noexcept { return text_; }

  private:
    char text_[32] = {};  // letter, 5 digits of owner, dot, 10 digits: 18 with the zero
    unsigned length_ = 0;
    unsigned digits_ = 0;
    char letter_, renamed_letter_;
};

}  // namespace strakes
