// Items: their runs in the directories of a tree, and their names.
#include "workload/items.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

namespace strakes {

std::vector<ItemRun> runs_of(const Items& items, std::uint64_t total, std::uint32_t leaves) {
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

ItemName::ItemName(bool directory, std::uint32_t owner, std::uint64_t total)
    : letter_(directory ? 'd' : 'f'), renamed_letter_(directory ? 'e' : 'g') {
    // Room for `total` itself, because next() may be called once after the last item.
    const std::string number = std::to_string(total);
    const std::string text = letter_ + std::to_string(owner) + "." + std::string(number.size(), '0');
    digits_ = static_cast<unsigned>(number.size());
    length_ = static_cast<unsigned>(text.size());
    text.copy(text_, sizeof text_ - 1);
}

void ItemName::set(std::uint64_t index, bool renamed) noexcept {
    text_[0] = renamed ? renamed_letter_ : letter_;
    char* digit = text_ + length_;
    for (unsigned i = 0; i < digits_; ++i, index /= 10) *--digit = static_cast<char>('0' + index % 10);
}

void ItemPath::print() noexcept {
    const std::string_view stem = name_.stem();
    if (clear_) text_.fill('\0');
    std::snprintf(text_.data(), PATH_MAX, "%s/%.*s%0*" PRIu64, directory_, static_cast<int>(stem.size()), stem.data(),
                  static_cast<int>(name_.digits()), index_);
}

// Return the path of `name` in the same directory.
ItemPath ItemPath::named(const ItemName& name) const noexcept {
    ItemPath other(name);
    other.index_ = index_;
    other.directory_ = directory_;
    other.print();
    return other;
}

}  // namespace strakes
