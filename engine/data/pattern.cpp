// Fills and verifies buffers at about the bandwidth of the CPU cache.
#include "data/pattern.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace strakes {

namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);

// Two adjacent words, as one 128-bit vector: 59 GB/s (one core, in cache, -O2 for plain x86-64), and 9 to 50 GB/s
// without explicit vectors, depending on the version of the compiler.
using Pair = std::uint64_t __attribute__((vector_size(16)));

// The eight words of one cache line, as four vectors. The next cache line takes four independent vector additions.
class Line {
  public:
    static constexpr std::size_t kBytes = 4 * sizeof(Pair);

    Line(std::uint64_t word, std::uint64_t step) noexcept
        : a_{word, word + step},
          b_{word + 2 * step, word + 3 * step},
          c_{word + 4 * step, word + 5 * step},
          d_{word + 6 * step, word + 7 * step},
          stride_{8 * step, 8 * step} {}

    void advance() noexcept {
        a_ = a_ + stride_;
        b_ = b_ + stride_;
        c_ = c_ + stride_;
        d_ = d_ + stride_;
    }

    void store(std::byte* out) const noexcept {
        std::memcpy(out, &a_, sizeof(Pair));
        std::memcpy(out + sizeof(Pair), &b_, sizeof(Pair));
        std::memcpy(out + 2 * sizeof(Pair), &c_, sizeof(Pair));
        std::memcpy(out + 3 * sizeof(Pair), &d_, sizeof(Pair));
    }

    Pair differences(const std::byte* in) const noexcept {
        return (load(in) ^ a_) | (load(in + sizeof(Pair)) ^ b_) | (load(in + 2 * sizeof(Pair)) ^ c_) |
               (load(in + 3 * sizeof(Pair)) ^ d_);
    }

  private:
    static Pair load(const std::byte* in) noexcept {
        Pair pair;
        std::memcpy(&pair, in, sizeof(Pair));
        return pair;
    }

    Pair a_, b_, c_, d_, stride_;
};

bool any_bit(Pair pair) noexcept {
    std::array<std::uint64_t, 2> words{};
    std::memcpy(words.data(), &pair, sizeof(Pair));
    return (words[0] | words[1]) != 0;
}

#if defined(__x86_64__)
// AVX2 vectors of four words halve the number of instructions. Each function keeps its vectors local, because code that
// is compiled without AVX2 cannot pass them (the ABI differs).
const bool kHasFours = __builtin_cpu_supports("avx2") != 0;
using Four = std::uint64_t __attribute__((vector_size(32)));
constexpr std::size_t kFours = 4 * sizeof(Four);

// Fill the buffer's whole groups of kFours bytes. Return the number of bytes filled.
[[gnu::target("avx2")]] std::size_t fill_fours(std::span<std::byte> buffer, std::uint64_t word,
                                               std::uint64_t step) noexcept {
    Four a{word, word + step, word + 2 * step, word + 3 * step};
    Four b = a + 4 * step, c = b + 4 * step, d = c + 4 * step;
    const std::size_t bytes = buffer.size() / kFours * kFours;
    std::byte* const end = buffer.data() + bytes;
    for (std::byte* out = buffer.data(); out != end; out += kFours) {
        std::memcpy(out, &a, sizeof a);
        std::memcpy(out + sizeof a, &b, sizeof b);
        std::memcpy(out + 2 * sizeof a, &c, sizeof c);
        std::memcpy(out + 3 * sizeof a, &d, sizeof d);
        a += 16 * step;
        b += 16 * step;
        c += 16 * step;
        d += 16 * step;
    }
    return bytes;
}

// Return the length in bytes of the matching prefix, in whole groups of kFours bytes.
[[gnu::target("avx2")]] std::size_t right_fours(std::span<const std::byte> buffer, std::uint64_t word,
                                                std::uint64_t step) noexcept {
    Four a{word, word + step, word + 2 * step, word + 3 * step};
    Four b = a + 4 * step, c = b + 4 * step, d = c + 4 * step;
    const std::byte* const end = buffer.data() + buffer.size() / kFours * kFours;
    const std::byte* in = buffer.data();
    for (; in != end; in += kFours) {
        Four e, f, g, h;  // separate variables, because compilers copy an array
        std::memcpy(&e, in, sizeof e);
        std::memcpy(&f, in + sizeof e, sizeof f);
        std::memcpy(&g, in + 2 * sizeof e, sizeof g);
        std::memcpy(&h, in + 3 * sizeof e, sizeof h);
        const Four wrong = (e ^ a) | (f ^ b) | (g ^ c) | (h ^ d);
        __m256i bits;
        std::memcpy(&bits, &wrong, sizeof bits);
        if (_mm256_testz_si256(bits, bits) == 0) break;
        a += 16 * step;
        b += 16 * step;
        c += 16 * step;
        d += 16 * step;
    }
    return static_cast<std::size_t>(in - buffer.data());
}
#endif

// Vigna, "Further scramblings of Marsaglia's xorshift generators", 2014: splitmix64.
std::uint64_t splitmix(std::uint64_t& state) noexcept {
    state += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

void put_part(std::span<std::byte> out, std::uint64_t word, std::size_t skip) noexcept {
    std::array<std::byte, kWord> bytes{};
    std::memcpy(bytes.data(), &word, kWord);
    std::memcpy(out.data(), bytes.data() + skip, out.size());
}

// Compare byte by byte. Used for data that is known to differ, or that is shorter than a cache line.
std::optional<Mismatch> verify_slowly(std::span<const std::byte> buffer, Stream stream, std::uint64_t offset) noexcept {
    for (std::size_t i = 0; i < buffer.size(); ++i) {
        const std::uint64_t at = offset + i;
        std::array<std::byte, kWord> bytes{};
        const std::uint64_t word = stream.base + at / kWord * stream.step;
        std::memcpy(bytes.data(), &word, kWord);
        const std::byte expected = bytes[at % kWord];
        if (buffer[i] != expected) return Mismatch{at, expected, buffer[i]};
    }
    return std::nullopt;
}

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kUnit = 128;
constexpr std::uint64_t kBlock = 131072;

// Return whether `number` is among the `percent` of all numbers that are chosen, evenly spread.
bool is_chosen(std::uint64_t number, std::uint32_t percent) noexcept {
    return percent != 0 && (number + 1) * percent / 100 != number * percent / 100;
}

// Return the random stream of a page. Compressible units of the page repeat the first two words of this stream.
Stream filler_of(Stream stream, std::uint64_t page) noexcept {
    std::uint64_t state = stream.base ^ page;
    const std::uint64_t base = splitmix(state);
    return {base, splitmix(state) | 1U};
}

// Consecutive bytes that either all belong to the stream or all lie within one repeating unit.
struct Piece {
    std::size_t bytes;
    bool repeats;
    std::uint64_t stream_offset;  // offset in the stream; differs from the file offset in a copy of the first block
};

Piece first_piece(std::size_t most, const Content& content, std::uint64_t offset) noexcept {
    const std::uint64_t from = is_chosen(offset / kBlock, content.duplicate_percent) ? offset % kBlock : offset;
    const bool repeats = is_chosen(from / kUnit, content.compressible_percent);
    const std::uint64_t left = content.compressible_percent != 0 ? kUnit - from % kUnit : kBlock - from % kBlock;
    return {.bytes = std::min<std::uint64_t>(left, most), .repeats = repeats, .stream_offset = from};
}

std::array<std::byte, kUnit> repeating_unit(const Content& content, std::uint64_t offset) noexcept {
    const Stream filler = aged(filler_of(content.stream, offset / kPage), content.age);
    const std::array<std::uint64_t, 2> words{filler.base, filler.base + filler.step};
    std::array<std::byte, kUnit> unit{};
    for (std::size_t at = 0; at < kUnit; at += sizeof words) std::memcpy(unit.data() + at, words.data(), sizeof words);
    return unit;
}

// Return the age of the buffer's first word, which must be complete, or `likely` if the age is not in `oldest` … `age`.
std::uint64_t age_of(std::span<const std::byte> buffer, const Content& content, std::uint64_t offset,
                     std::uint64_t likely) noexcept {
    constexpr std::uint64_t kInverse = 0xf1de83e19937733dU;  // inverse of kAge, modulo 2^64
    static_assert(kAge * kInverse == 1);
    Content first = content;
    first.age = first.oldest = 0;
    std::array<std::byte, kWord> bytes{};
    fill(bytes, first, offset);
    std::uint64_t unaged = 0, found = 0;
    std::memcpy(&unaged, bytes.data(), kWord);
    std::memcpy(&found, buffer.data(), kWord);
    const std::uint64_t age = (found - unaged) * kInverse;
    return age - content.oldest <= content.age - content.oldest ? age : likely;
}

// Verify part of a word by trying every age. With more than kMostAges possible ages, accept the bytes unverified.
std::optional<Mismatch> verify_part(std::span<const std::byte> buffer, const Content& content,
                                    std::uint64_t offset) noexcept {
    constexpr std::uint64_t kMostAges = 4096;
    if (buffer.empty() || content.age - content.oldest > kMostAges) return std::nullopt;
    std::optional<Mismatch> wrong;
    Content one = content;
    for (std::uint64_t age = content.oldest; age <= content.age; ++age) {
        one.age = one.oldest = age;
        wrong = verify(buffer, one, offset);
        if (!wrong) break;
    }
    return wrong;
}

std::optional<Mismatch> verify_repeating(std::span<const std::byte> buffer, const Content& content,
                                         std::uint64_t offset) noexcept {
    const auto unit = repeating_unit(content, offset);
    const auto expected = std::span(unit).subspan(offset % kUnit, buffer.size());
    if (std::memcmp(buffer.data(), expected.data(), buffer.size()) == 0) return std::nullopt;
    const auto [wrong, wanted] = std::ranges::mismatch(buffer, expected);
    return Mismatch{offset + static_cast<std::uint64_t>(wrong - buffer.begin()), *wanted, *wrong};
}

}  // namespace

Stream stream_of(std::uint32_t seed, std::uint64_t salt, std::uint64_t file_id) noexcept {
    // Mix in steps, so that (seed, file) and (seed + 1, file - 1) give unrelated streams.
    std::uint64_t state = salt;
    state = splitmix(state) ^ seed;
    state = splitmix(state) ^ file_id;
    const std::uint64_t base = splitmix(state);
    return {base, splitmix(state) | 1U};
}

void fill(std::span<std::byte> buffer, Stream stream, std::uint64_t offset_bytes) noexcept {
    std::uint64_t word = stream.base + offset_bytes / kWord * stream.step;
    if (const std::size_t skip = offset_bytes % kWord; skip != 0) {
        const std::size_t part = std::min(buffer.size(), kWord - skip);
        put_part(buffer.first(part), word, skip);
        buffer = buffer.subspan(part);
        word += stream.step;
    }
#if defined(__x86_64__)
    if (kHasFours) {
        const std::size_t done = fill_fours(buffer, word, stream.step);
        buffer = buffer.subspan(done);
        word += done / kWord * stream.step;
        if (buffer.empty()) return;
    }
#endif
    const std::size_t lines = buffer.size() / Line::kBytes;
    std::byte* out = buffer.data();
    Line line(word, stream.step);
    for (std::size_t i = 0; i < lines; ++i, out += Line::kBytes, line.advance()) line.store(out);

    buffer = buffer.subspan(lines * Line::kBytes);
    std::array<std::byte, Line::kBytes> rest{};
    line.store(rest.data());
    std::copy_n(rest.begin(), buffer.size(), buffer.begin());
}

std::optional<Mismatch> verify(std::span<const std::byte> buffer, Stream stream, std::uint64_t offset_bytes) noexcept {
    const std::size_t skip = (kWord - offset_bytes % kWord) % kWord;
    const std::size_t head = std::min<std::size_t>(buffer.size(), skip);
    if (const auto wrong = verify_slowly(buffer.first(head), stream, offset_bytes)) return wrong;
    buffer = buffer.subspan(head);
    offset_bytes += head;
#if defined(__x86_64__)
    if (kHasFours) {
        const std::size_t right = right_fours(buffer, stream.base + offset_bytes / kWord * stream.step, stream.step);
        buffer = buffer.subspan(right);
        offset_bytes += right;
        if (buffer.empty()) return std::nullopt;
    }
#endif

    const std::size_t lines = buffer.size() / Line::kBytes;
    const std::byte* in = buffer.data();
    Line line(stream.base + offset_bytes / kWord * stream.step, stream.step);
    for (std::size_t i = 0; i < lines; ++i, in += Line::kBytes, line.advance()) {
        // The difference is within this cache line, so the byte-wise search stops there.
        if (any_bit(line.differences(in))) {
            return verify_slowly(buffer.subspan(i * Line::kBytes), stream, offset_bytes + i * Line::kBytes);
        }
    }
    const std::size_t done = lines * Line::kBytes;
    return verify_slowly(buffer.subspan(done), stream, offset_bytes + done);
}

void fill_mixed(std::span<std::byte> buffer, const Content& content, std::uint64_t offset_bytes) noexcept {
    while (!buffer.empty()) {
        const Piece piece = first_piece(buffer.size(), content, offset_bytes);
        if (piece.repeats) {
            const auto unit = repeating_unit(content, piece.stream_offset);
            std::memcpy(buffer.data(), unit.data() + piece.stream_offset % kUnit, piece.bytes);
        } else {
            fill(buffer.first(piece.bytes), aged(content.stream, content.age), piece.stream_offset);
        }
        buffer = buffer.subspan(piece.bytes);
        offset_bytes += piece.bytes;
    }
}

std::optional<Mismatch> verify_mixed(std::span<const std::byte> buffer, const Content& content,
                                     std::uint64_t offset_bytes) noexcept {
    while (!buffer.empty()) {
        const Piece piece = first_piece(buffer.size(), content, offset_bytes);
        const auto here = buffer.first(piece.bytes);
        auto wrong = piece.repeats ? verify_repeating(here, content, piece.stream_offset)
                                   : verify(here, aged(content.stream, content.age), piece.stream_offset);
        if (wrong) {
            wrong->offset_bytes += offset_bytes - piece.stream_offset;
            return wrong;
        }
        buffer = buffer.subspan(piece.bytes);
        offset_bytes += piece.bytes;
    }
    return std::nullopt;
}

// Data of one age begins and ends at a word boundary.
std::optional<Mismatch> verify_ages(std::span<const std::byte> buffer, const Content& content,
                                    std::uint64_t offset_bytes) noexcept {
    const std::size_t head = std::min<std::size_t>(buffer.size(), (kWord - offset_bytes % kWord) % kWord);
    if (const auto wrong = verify_part(buffer.first(head), content, offset_bytes)) return wrong;
    buffer = buffer.subspan(head);
    offset_bytes += head;
    const auto tail = buffer.last(buffer.size() % kWord);
    const std::uint64_t end = offset_bytes + buffer.size() - tail.size();
    Content one = content;
    for (std::uint64_t at = offset_bytes; at < end;) {
        const auto rest = buffer.subspan(at - offset_bytes, end - at);
        one.age = one.oldest = age_of(rest, content, at, one.age);
        const auto wrong = verify(rest, one, at);
        if (!wrong) break;
        // The next age begins with a whole word: words of different ages may have equal leading bytes.
        const std::uint64_t word = wrong->offset_bytes / kWord * kWord;
        if (word == at) return wrong;
        at = word;
    }
    return verify_part(tail, content, end);
}

}  // namespace strakes
