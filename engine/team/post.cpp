// most() uses dissemination (Hensgen, Finkel, Manber 1988), which may count a value twice. all() uses Bruck's
// concatenation (Bruck et al. 1997). to_first() and from_first() use a binomial tree.
#include "team/post.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "system/bytes.hpp"

namespace strakes {

std::uint64_t Circle::most(std::uint64_t mine, Post::Wait wait) {
    for (Rank distance = 1; distance < size(); distance *= 2) {
        Packer packer;
        packer.put(mine);
        const std::string said = post_.swap(after(distance), packer.take(), before(distance), wait);
        mine = std::max(mine, Unpacker(said).get<std::uint64_t>());
    }
    return mine;
}

std::vector<std::string> Circle::all(std::string_view mine) {
    // Texts of this member, of the one before it, and so on.
    std::vector<std::string> backwards{std::string(mine)};
    backwards.reserve(size());
    for (Rank distance = 1; distance < size(); distance *= 2) {
        const Rank count = std::min(distance, size() - distance);
        Packer packer;
        for (Rank i = 0; i < count; ++i) packer.put_text(backwards[i]);
        const std::string said = post_.swap(after(distance), packer.take(), before(distance), Post::Wait::patient);
        Unpacker unpacker(said);
        for (Rank i = 0; i < count; ++i) backwards.emplace_back(unpacker.get_text());
    }
    std::vector<std::string> forwards(size());
    for (Rank i = 0; i < size(); ++i) forwards[(mine_ + size() - i) % size()] = std::move(backwards[i]);
    return forwards;
}

// The tree of from_first() in reverse. A member whose lowest set bit is b forwards the texts of members mine_ to mine_
// + b - 1.
std::vector<std::string> Circle::to_first(std::string_view mine) {
    std::vector<std::string> said{std::string(mine)};
    for (Rank step = 1; step < size(); step *= 2) {
        if ((mine_ & step) != 0) {
            Packer packer;
            for (const std::string& each : said) packer.put_text(each);
            send(mine_ - step, packer.take());
            return {};
        }
        if (step >= size() - mine_) continue;
        const std::string bytes = receive(mine_ + step);
        for (Unpacker unpacker(bytes); !unpacker.at_end();) said.emplace_back(unpacker.get_text());
    }
    return said;
}

std::string Circle::from_first(std::string mine) {
    // A member whose lowest set bit is b receives from mine_ - b and sends to mine_ + s for each power of two s < b.
    const Rank lowest = mine_ == 0 ? std::bit_ceil(size()) : mine_ & (~mine_ + 1);
    if (mine_ != 0) mine = post_.receive(ranks_[mine_ - lowest], Post::Wait::patient);
    for (Rank step = lowest / 2; step > 0; step /= 2)
        if (step < size() - mine_) send(mine_ + step, mine);
    return mine;
}

}  // namespace strakes
