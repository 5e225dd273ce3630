// The stamped pattern: any piece has the same bytes, and a wrong byte is found at its offset.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "data/pattern.hpp"

using strakes::Content;
using strakes::fill;
using strakes::Mismatch;
using strakes::Stream;
using strakes::stream_of;
using strakes::verify;
using Bytes = std::vector<std::byte>;

namespace {

constexpr Mismatch kNone{.offset_bytes = UINT64_MAX, .expected = {}, .found = {}};

Bytes whole(Stream stream, std::size_t size) {
    Bytes bytes(size);
    fill(bytes, stream, 0);
    return bytes;
}

}  // namespace

TEST_CASE("word i of a file is base + i * step") {
    const Stream stream = stream_of(7, 0, 3);
    CHECK(stream.step % 2 == 1);
    const Bytes bytes = whole(stream, 8000);
    for (std::uint64_t i = 0; i < 1000; ++i) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + i * 8, 8);
        REQUIRE(word == stream.base + i * stream.step);
    }
}

TEST_CASE("a piece at any offset and of any length equals that part of the whole") {
    const Stream stream = stream_of(1, 0, 42);
    const Bytes all = whole(stream, 512);
    for (std::size_t offset = 0; offset < 96; ++offset) {
        for (std::size_t length = 0; length < 200; ++length) {
            Bytes piece(length + 2, std::byte{0xAA});
            const std::span<std::byte> inside = std::span(piece).subspan(1, length);
            fill(inside, stream, offset);
            const auto from = all.begin() + static_cast<std::ptrdiff_t>(offset);
            REQUIRE(std::equal(inside.begin(), inside.end(), from));
            REQUIRE(piece.front() == std::byte{0xAA});  // no byte outside the piece is written
            REQUIRE(piece.back() == std::byte{0xAA});
            REQUIRE_FALSE(verify(inside, stream, offset).has_value());
        }
    }
}

TEST_CASE("offsets far beyond 4 GiB work") {
    const Stream stream = stream_of(1, 0, 1);
    const std::uint64_t offset = (std::uint64_t{1} << 50U) + 3;
    Bytes piece(1000);
    fill(piece, stream, offset);
    CHECK_FALSE(verify(piece, stream, offset).has_value());
    CHECK(verify(piece, stream, offset + 8).has_value());
    CHECK(verify(piece, stream, offset - (std::uint64_t{1} << 32U)).has_value());
}

TEST_CASE("one flipped bit is found at its offset, with the expected byte") {
    const Stream stream = stream_of(3, 0, 9);
    std::mt19937_64 random(5);  // NOLINT(bugprone-random-generator-seed): the same rounds in every run
    for (int round = 0; round < 2000; ++round) {
        const std::uint64_t offset = random() % 300;
        Bytes piece(1 + random() % 400);
        fill(piece, stream, offset);
        const std::size_t at = random() % piece.size();
        const std::byte good = piece[at];
        piece[at] ^= std::byte{1} << (random() % 8);
        const Mismatch wrong = verify(piece, stream, offset).value_or(kNone);
        REQUIRE(wrong.offset_bytes == offset + at);
        REQUIRE(wrong.expected == good);
        REQUIRE(wrong.found == piece[at]);
    }
}

TEST_CASE("the first of several wrong bytes is reported") {
    const Stream stream = stream_of(3, 0, 9);
    Bytes piece = whole(stream, 4096);
    piece[4000] ^= std::byte{1};
    piece[777] ^= std::byte{1};
    piece[778] ^= std::byte{1};
    CHECK(verify(piece, stream, 0).value_or(kNone).offset_bytes == 777);
}

TEST_CASE("another file, another seed, another run, another offset or zeros are mismatches") {
    const Bytes piece = whole(stream_of(1, 0, 1), 4096);
    CHECK(verify(piece, stream_of(1, 0, 2), 0).has_value());
    CHECK(verify(piece, stream_of(2, 0, 1), 0).has_value());
    CHECK(verify(piece, stream_of(1, 1, 1), 0).has_value());
    CHECK(verify(piece, stream_of(1, 0, 1), 4096).has_value());
    CHECK(verify(Bytes(4096), stream_of(1, 0, 1), 0).has_value());
}

TEST_CASE("blocks of files do not repeat") {
    // Deduplication compares blocks, and compression matches of four bytes, so four bytes may hardly ever occur twice.
    std::vector<std::uint32_t> quarters;
    for (std::uint64_t file = 0; file < 16; ++file) {
        const Bytes bytes = whole(stream_of(0, 0, file), std::size_t{64} << 10U);
        for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
            std::uint32_t word = 0;
            std::memcpy(&word, bytes.data() + i, 4);
            quarters.push_back(word);
        }
    }
    const std::size_t count = quarters.size();
    std::sort(quarters.begin(), quarters.end());
    quarters.erase(std::unique(quarters.begin(), quarters.end()), quarters.end());
    CHECK(static_cast<double>(quarters.size()) >= 0.999 * static_cast<double>(count));
}

TEST_CASE("the requested percentage of units repeats, in every page, and no unit is zeros") {
    constexpr std::size_t kUnit = 128, kPage = 4096, kPages = 200;
    for (const std::uint32_t percent : {0U, 1U, 30U, 50U, 99U, 100U}) {
        const Content content{stream_of(5, 0, 2), percent, 0};
        Bytes all(kPages * kPage);
        fill(all, content, 0);
        std::size_t repeating = 0, most_of_a_page = 0, least_of_a_page = SIZE_MAX;
        for (std::size_t page = 0; page < kPages; ++page) {
            std::size_t here = 0;
            for (std::size_t at = page * kPage; at < (page + 1) * kPage; at += kUnit)
                here += std::memcmp(&all[at], &all[at + 16], kUnit - 16) == 0 ? 1U : 0U;
            repeating += here;
            most_of_a_page = std::max(most_of_a_page, here);
            least_of_a_page = std::min(least_of_a_page, here);
        }
        CHECK(repeating == kPages * kPage / kUnit * percent / 100);
        CHECK(most_of_a_page - least_of_a_page <= 1);
        CHECK(std::ranges::count(all, std::byte{0}) < static_cast<std::ptrdiff_t>(all.size() / 50));
        CHECK_FALSE(verify(all, content, 0).has_value());
    }
}

TEST_CASE("the requested percentage of blocks are copies, for all block sizes of deduplication") {
    constexpr std::size_t kLargest = 131072, kBlocks = 200;
    for (const std::uint32_t percent : {0U, 1U, 25U, 50U, 99U}) {
        for (const std::uint32_t compressible : {0U, 40U}) {
            const Content content{stream_of(5, 0, 2), compressible, percent};
            Bytes all(kBlocks * kLargest);
            fill(all, content, 0);
            for (const std::size_t block : {std::size_t{4096}, std::size_t{65536}, kLargest}) {
                std::set<std::string_view> different;
                for (std::size_t at = 0; at < all.size(); at += block)
                    different.emplace(reinterpret_cast<const char*>(&all[at]), block);
                CHECK(different.size() == all.size() / block * (100 - percent) / 100);
            }
            CHECK_FALSE(verify(all, content, 0).has_value());
        }
    }
}

TEST_CASE("content without repetition and copies is the plain stream") {
    Bytes all(10000);
    fill(all, Content{stream_of(1, 0, 42), 0, 0}, 0);
    CHECK(all == whole(stream_of(1, 0, 42), all.size()));
}

TEST_CASE("a piece of mixed content at any offset equals that part of the whole, and a wrong byte is found") {
    const Content content{stream_of(1, 0, 42), 37, 45};
    Bytes all(std::size_t{400} * 4096);
    fill(all, content, 0);
    std::mt19937_64 random(11);  // NOLINT(bugprone-random-generator-seed): the same rounds in every run
    for (int round = 0; round < 3000; ++round) {
        const std::uint64_t offset = random() % (all.size() - 20000);
        Bytes piece(1 + random() % 20000);
        fill(piece, content, offset);
        REQUIRE(std::equal(piece.begin(), piece.end(), all.begin() + static_cast<std::ptrdiff_t>(offset)));
        REQUIRE_FALSE(verify(piece, content, offset).has_value());
        const std::size_t at = random() % piece.size();
        const std::byte good = piece[at];
        piece[at] ^= std::byte{1} << (random() % 8);
        const Mismatch wrong = verify(piece, content, offset).value_or(kNone);
        REQUIRE(wrong.offset_bytes == offset + at);
        REQUIRE(wrong.expected == good);
        REQUIRE(wrong.found == piece[at]);
    }
}

TEST_CASE(
    "data of different ages have no word in common, and a piece of several ages is verified unless one is too old") {
    constexpr std::uint64_t kOldest = 3, kNewest = 9;
    std::mt19937_64 random(12);  // NOLINT(bugprone-random-generator-seed): the same rounds in every run
    for (const Content& kind : {Content{stream_of(1, 0, 42)}, Content{stream_of(1, 0, 42), 37, 45}}) {
        Bytes all(std::size_t{100} * 4096), before(all.size());
        Content one = kind;
        one.age = one.oldest = kOldest - 1;
        fill(before, one, 0);
        for (std::size_t at = 0; at < all.size();) {
            const std::size_t bytes = std::min<std::size_t>(all.size() - at, 8 * (1 + random() % 500));
            one.age = one.oldest = kOldest + random() % (kNewest - kOldest + 1);
            fill(std::span(all).subspan(at, bytes), one, at);
            at += bytes;
        }
        for (std::size_t at = 0; at < all.size(); at += 8) REQUIRE(std::memcmp(&all[at], &before[at], 8) != 0);
        Content several = kind;
        several.oldest = kOldest;
        several.age = kNewest;
        for (int round = 0; round < 1000; ++round) {
            const std::size_t offset = random() % (all.size() - 20000);
            const auto first = all.begin() + static_cast<std::ptrdiff_t>(offset);
            Bytes piece(first, first + static_cast<std::ptrdiff_t>(24 + random() % 20000));
            REQUIRE_FALSE(verify(piece, several, offset).has_value());
            // Change one byte, or all of a word, at a word that lies completely inside the piece.
            const std::size_t word = (offset + 7) / 8 * 8 - offset + random() % ((piece.size() - 8) / 8) * 8;
            REQUIRE(word + 8 <= piece.size());
            if (round % 2 == 0)
                piece[word + random() % 8] ^= std::byte{1} << (random() % 8);
            else
                std::memcpy(&piece[word], &before[offset + word], 8);
            REQUIRE(verify(piece, several, offset).value_or(kNone).offset_bytes / 8 == (offset + word) / 8);
        }
    }
}
