// A seeded permutation of 0 .. size-1 that needs no memory: an unbalanced Feistel network with cycle walking (Black and
// Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002).
#pragma once

#include <bit>
#include <cstdint>

namespace strakes {

// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

class Permutation {
  public:
    constexpr Permutation(std::uint64_t size, std::uint64_t key) noexcept : size_(size), key_(key) {
        const auto bits = static_cast<unsigned>(size > 1 ? std::bit_width(size - 1) : 0);
        low_bits_ = bits / 2;
        low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
        high_mask_ = (std::uint64_t{1} << (bits - low_bits_)) - 1;
    }

    // Return the image of `index`. The network's domain is less than twice `size`, so this takes at most two steps on
    // average.
    constexpr std::uint64_t operator()(std::uint64_t index) const noexcept {
        do {
            std::uint64_t high = index >> low_bits_;
            std::uint64_t low = index & low_mask_;
            for (std::uint64_t round = 0; round < 2; ++round) {
                high ^= mix(low + key_ + 2 * round) & high_mask_;
                low ^= mix(high + key_ + 2 * round + 1) & low_mask_;
            }
            index = high << low_bits_ | low;
        } while (index >= size_);
        return index;
    }

    // Return a different permutation of the same numbers.
    [[nodiscard]] constexpr Permutation again(std::uint64_t pass) const noexcept {
        return {size_, mix(key_ ^ mix(pass))};
    }

  private:
    std::uint64_t size_, key_;
    unsigned low_bits_ = 0;
    std::uint64_t low_mask_ = 0, high_mask_ = 0;
};

}  // namespace strakes
