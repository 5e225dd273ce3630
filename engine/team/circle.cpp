// Dissemination (Hensgen, Finkel, Manber 1988) for what does not mind being counted twice, Bruck's concatenation (Bruck
// et al. 1997) for what each said, and a binomial tree from the first.
#include "team/circle.hpp"

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
    // Of this member, the one before it, the one before that …
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

// Along the tree of from_first: a member speaks for those that come after it, up to its lowest digit.
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
    // The lowest digit of a member's number decides from whom it hears; those below that digit hear from it.
    const Rank lowest = mine_ == 0 ? std::bit_ceil(size()) : mine_ & (~mine_ + 1);
    if (mine_ != 0) mine = post_.receive(ranks_[mine_ - lowest], Post::Wait::patient);
    for (Rank step = lowest / 2; step > 0; step /= 2)
        if (step < size() - mine_) send(mine_ + step, mine);
    return mine;
}

}  // namespace strakes
