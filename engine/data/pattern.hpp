// Data that strakes writes. Every 8-byte word depends on its file and offset, so that every byte read can be verified
// without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace strakes {

// Contents of one file: word i is base + i * step modulo 2^64, in native byte order. The step is odd and random, so the
// sequence never repeats within a file, and looks incompressible to compressors and new to block de-duplication.
struct Stream {
    std::uint64_t base;
    std::uint64_t step;
};

// `salt` differs from run to run, so that de-duplicating storage finds no data of an earlier run.
Stream stream_of(std::uint32_t seed, std::uint64_t salt, std::uint64_t file_id) noexcept;

// A stream with compressible and duplicate parts, both spread evenly.
//
// Compressible: 128-byte units that repeat 16 bytes of their page. Storage omits zeros without compressing them, and
// storage that compresses small blocks would find incompressible ones beside one contiguous compressible part.
//
// Duplicate: blocks of 128 KiB that copy the file's first block, for de-duplication in blocks of up to that size.
//
// A rewrite in place increases the age, which changes every word. De-duplicating storage then finds no copy, and
// verification detects stale data. Verification accepts any age from `oldest` to `age` in each word.
struct Content {
    Stream stream{};
    std::uint32_t compressible_percent = 0;
    std::uint32_t duplicate_percent = 0;
    std::uint64_t age = 0, oldest = 0;

    [[nodiscard]] bool plain() const noexcept { return (compressible_percent | duplicate_percent) == 0; }
};

void fill(std::span<std::byte> buffer, Stream stream, std::uint64_t offset_bytes) noexcept;

struct Mismatch {
    std::uint64_t offset_bytes;  // offset in the file
    std::byte expected;
    std::byte found;
};

std::optional<Mismatch> verify(std::span<const std::byte> buffer, Stream stream, std::uint64_t offset_bytes) noexcept;

// Difference between words of successive ages. Odd, so that no age repeats.
inline constexpr std::uint64_t kAge = 0x9e3779b97f4a7c15U;
constexpr Stream aged(Stream stream, std::uint64_t age) noexcept { return {stream.base + age * kAge, stream.step}; }

// Set the first word of each sector to this age, in a buffer that was filled with the stream. Storage that compares
// sectors or larger blocks then sees new data. Much cheaper than filling the buffer again.
inline void renew(std::span<std::byte> buffer, Stream stream, std::uint64_t age) noexcept {
    constexpr std::size_t kSectorBytes = 512;
    std::uint64_t word = aged(stream, age).base;
    for (std::size_t at = 0; at + sizeof word <= buffer.size(); at += kSectorBytes) {
        std::memcpy(&buffer[at], &word, sizeof word);
        word += kSectorBytes / sizeof word * stream.step;
    }
}

// For content with several ages, or compressible or duplicate parts. Other content takes the faster functions above.
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
