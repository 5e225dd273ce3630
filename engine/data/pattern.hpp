// What strakes writes: every 8-byte word says which file and offset it belongs to, so that every byte read can be
// checked without keeping a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace strakes {

// The contents of one file: word i is base + i * step (little endian on little-endian machines), step odd.
// A linear sequence costs one addition a word, never repeats within a file (an odd step has period 2^64), and with a
// step random in all its bits looks incompressible to compressors and new to block de-duplication.
struct Stream {
    std::uint64_t base;
    std::uint64_t step;
};

// `salt` is that of the run: storage that finds what it has already must not find an earlier run's data.
Stream stream_of(std::uint32_t seed, std::uint64_t salt, std::uint64_t file_id) noexcept;

// A stream of which some units of 128 bytes, spread evenly, repeat sixteen bytes of their page (for compression: no
// zeros, which storage leaves out without compressing, and no half of a block that alone does not compress), and some
// blocks of 128 KiB, spread evenly, are copies of the file's first block (for de-duplication in blocks of up to that
// size).
//
// What is written once more in the same place has another age, and every word of it is another one: storage that
// compares finds no copy, and what was written before is not taken for what was written last. To be verified, each word
// may be of any age from `oldest` to `age`.
struct Content {
    Stream stream{};
    std::uint32_t compressible_percent = 0;
    std::uint32_t duplicate_percent = 0;
    std::uint64_t age = 0, oldest = 0;

    [[nodiscard]] bool plain() const noexcept { return (compressible_percent | duplicate_percent) == 0; }
};

// The stream's bytes from offset_bytes on.
void fill(std::span<std::byte> buffer, Stream stream, std::uint64_t offset_bytes) noexcept;

struct Mismatch {
    std::uint64_t offset_bytes;  // in the file
    std::byte expected;
    std::byte found;
};

// The first byte that is not the stream's.
std::optional<Mismatch> verify(std::span<const std::byte> buffer, Stream stream, std::uint64_t offset_bytes) noexcept;

// As far apart as words of neighbouring ages are; odd, so that no age comes again.
inline constexpr std::uint64_t kAge = 0x9e3779b97f4a7c15U;
constexpr Stream aged(Stream stream, std::uint64_t age) noexcept { return {stream.base + age * kAge, stream.step}; }

// Makes other data of a buffer that was filled with the stream, for storage that compares sectors or larger blocks: the
// first word of each sector gets this age. Far cheaper than filling it anew.
inline void renew(std::span<std::byte> buffer, Stream stream, std::uint64_t age) noexcept {
    constexpr std::size_t kSectorBytes = 512;
    std::uint64_t word = aged(stream, age).base;
    for (std::size_t at = 0; at + sizeof word <= buffer.size(); at += kSectorBytes) {
        std::memcpy(&buffer[at], &word, sizeof word);
        word += kSectorBytes / sizeof word * stream.step;
    }
}

// The plain stream of one age costs nothing more than without a content.
void fill_mixed(std::span<std::byte> buffer, const Content& content, std::uint64_t offset_bytes) noexcept;
std::optional<Mismatch> verify_mixed(std::span<const std::byte> buffer, const Content& content,
                                     std::uint64_t offset_bytes) noexcept;
std::optional<Mismatch> verify_ages(std::span<const std::byte> buffer, const Content& content,
                                    std::uint64_t offset_bytes) noexcept;
inline void fill(std::span<std::byte> buffer, const Content& content, std::uint64_t offset_bytes) noexcept {
    if (content.plain()) return fill(buffer, aged(content.stream, content.age), offset_bytes);
    fill_mixed(buffer, content, offset_bytes);
}
inline std::optional<Mismatch> verify(std::span<const std::byte> buffer, const Content& content,
                                      std::uint64_t offset_bytes) noexcept {
    if (content.oldest != content.age) return verify_ages(buffer, content, offset_bytes);
    if (content.plain()) return verify(buffer, aged(content.stream, content.age), offset_bytes);
    return verify_mixed(buffer, content, offset_bytes);
}

}  // namespace strakes
