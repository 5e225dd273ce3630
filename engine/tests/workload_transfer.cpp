// Transfers: data are read as written, and wrong data are found at their offset.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

const Json kShared = {{"layout", "shared-file"}};

Json with(Json phase, const Json& more) {
    phase.update(more);
    return phase;
}

std::uint64_t operations(const std::vector<RankResult>& results) {
    std::uint64_t sum = 0;
    for (const RankResult& result : results) sum += result.operations;
    return sum;
}

std::uint64_t verified(const std::vector<RankResult>& results) {
    std::uint64_t sum = 0;
    for (const RankResult& result : results) sum += result.verified_bytes;
    return sum;
}

bool failed(const std::vector<RankResult>& results) {
    return std::ranges::any_of(results, [](const RankResult& result) { return result.failure.has_value(); });
}

// Stop after the first operation.
const Json kAtOnce = {{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}};

}  // namespace

TEST_CASE("data written in any access are verified in any other access") {
    for (const std::string written : {"segmented", "strided", "random"}) {
        for (const std::string read : {"segmented", "strided", "random", "whole"}) {
            INFO(written, " then ", read);
            Stage stage(
                plan_of({transfer("w", "write", with(kShared, {{"access", written}})),
                         transfer("r", "read",
                                  with(kShared, {{"access", read}, {"verify", true}, {"transfer_bytes", 8192}}))}));
            CHECK_FALSE(failed(stage.run(0)));
            CHECK(fs::file_size(stage.path() / "data.data") == 2 * 4 * 65536);
            const auto results = stage.run(1);
            CHECK_FALSE(failed(results));
            CHECK(verified(results) == (read == "whole" ? 2 : 1) * 2 * 4 * 65536);
        }
    }
}

TEST_CASE("a rank can read the data of another one") {
    Stage stage(plan_of(
        {transfer("w", "write"), transfer("r", "read", {{"rank_shift", 4}, {"verify", true}, {"access", "random"}})},
        3));
    CHECK_FALSE(failed(stage.run(0)));
    CHECK_FALSE(failed(stage.run(1)));
}

TEST_CASE("a transfer size that is not a multiple of a word is verified") {
    const Json sizes = {{"transfer_bytes", 1001}, {"block_bytes", 7007}, {"segments", 3}};
    Stage stage(plan_of({transfer("w", "write", sizes), transfer("r", "read", with(sizes, {{"verify", true}}))}));
    CHECK_FALSE(failed(stage.run(0)));
    CHECK(verified(stage.run(1)) == 2 * 3 * 7007);
}

TEST_CASE("a corrupted byte is found with its file, offset, and both values") {
    Stage stage(plan_of({transfer("w", "write"), transfer("r", "read", {{"verify", true}})}));
    CHECK_FALSE(failed(stage.run(0)));
    constexpr off_t kOffset = 70001;
    const Descriptor file(::open((stage.path() / "data.1.data").c_str(), O_RDWR));
    unsigned char byte = 0;
    REQUIRE(::pread(file.get(), &byte, 1, kOffset) == 1);
    byte ^= 0x40U;
    REQUIRE(::pwrite(file.get(), &byte, 1, kOffset) == 1);
    const auto results = stage.run(1);
    CHECK_FALSE(results[0].failure);
    REQUIRE(results[1].failure);
    CHECK(results[1].failure->path == "stage/data.1.data");
    CHECK(results[1].failure->offset_bytes == kOffset);
    CHECK(results[1].failure->why.find("expected byte 0x") != std::string::npos);
    CHECK(results[1].verified_bytes == 65536 + 4096);
}

TEST_CASE("a file that became shorter is an error at the offset where it ends") {
    Stage stage(plan_of({transfer("w", "write"), transfer("r", "read")}, 1));
    CHECK_FALSE(failed(stage.run(0)));
    fs::resize_file(stage.path() / "data.0.data", 10000);
    const auto results = stage.run(1);
    REQUIRE(results[0].failure);
    CHECK(results[0].failure->offset_bytes == 10000);
    CHECK(results[0].operations == 2);
}

TEST_CASE("a mixed phase reads and writes its shares, and the data remain correct") {
    Stage stage(plan_of(
        {transfer("w", "write", {{"segments", 64}}),
         transfer("m", "mixed", {{"segments", 64}, {"read_percent", 70}, {"verify", true}, {"access", "random"}}),
         transfer("r", "read", {{"segments", 64}, {"verify", true}})},
        1));
    CHECK_FALSE(failed(stage.run(0)));
    const auto mixed = stage.run(1);
    CHECK_FALSE(failed(mixed));
    CHECK(operations(mixed) == 1024);
    CHECK(verified(mixed) > 1024 * 4096 * 0.65);
    CHECK(verified(mixed) < 1024 * 4096 * 0.75);
    CHECK_FALSE(failed(stage.run(2)));
}

TEST_CASE("a mixed phase that repeats does not always write the same transfers") {
    const Json brief = {{"segments", 1}};
    Stage stage(plan_of(
        {transfer("w", "write", brief), transfer("m", "mixed",
                                                 with(brief, {{"read_percent", 50},
                                                              {"pattern", "once"},
                                                              {"stop", {{"rule", "seconds"}, {"seconds", 0.2}}}}))},
        1));
    CHECK_FALSE(failed(stage.run(0)));
    const auto mixed = stage.run(1);
    CHECK_FALSE(failed(mixed));
    if (mixed[0].operations < std::uint64_t{16} * 40) {
        MESSAGE("this machine is too slow to tell");
        return;
    }
    // All writes use one buffer. After 40 passes each of the 16 transfers was written at least once.
    const std::string text = text_of(stage.path() / "data.0.data");
    REQUIRE(text.size() == 65536);
    for (std::size_t at = 4096; at < text.size(); at += 4096) CHECK(text.substr(at, 4096) == text.substr(0, 4096));
}

TEST_CASE("after a stonewalled write only the written data are read") {
    for (const std::string access : {"segmented", "random"}) {
        INFO(access);
        const Json geometry = {{"access", access}};
        Stage stage(plan_of({transfer("w", "write", with(geometry, kAtOnce)),
                             transfer("r", "read", with(geometry, {{"verify", true}})),
                             transfer("again", "rewrite", geometry)}));
        const auto written = stage.run(0);
        CHECK_FALSE(failed(written));
        CHECK(written[0].out_of_time);
        CHECK(operations(written) == 2);
        const auto read = stage.run(1);
        CHECK_FALSE(failed(read));
        CHECK(operations(read) == 2);
        CHECK(operations(stage.run(2)) == 2);
    }
}

TEST_CASE("after a stonewalled write in order, another geometry reads the data that exist") {
    const std::vector<std::pair<Json, std::uint64_t>> others{{Json{{"access", "random"}}, 2},
                                                             {Json{{"transfer_bytes", 8192}}, 0},
                                                             {Json{{"transfer_bytes", 1024}}, 8},
                                                             {Json{{"transfer_bytes", 512}, {"access", "random"}}, 16},
                                                             {Json{{"segments", 2}}, 2}};
    for (const auto& [other, there] : others) {
        Json verified = other;
        verified["verify"] = true;
        Stage stage(plan_of({transfer("w", "write", kAtOnce), transfer("r", "read", verified)}));
        CHECK(operations(stage.run(0)) == 2);
        const auto results = stage.run(1);
        CHECK_FALSE(failed(results));
        CHECK(operations(results) == there);
    }
}

TEST_CASE("after a stonewalled write out of order, another geometry is refused with the reason") {
    for (const Json& other : {Json{{"access", "segmented"}}, Json{{"transfer_bytes", 8192}}, Json{{"segments", 2}}}) {
        Json random{{"access", "random"}};
        Json write = random;
        write.update(kAtOnce);
        Json read = random;
        read.update(other);
        Stage stage(plan_of({transfer("w", "write", write), transfer("r", "read", read)}));
        CHECK_FALSE(failed(stage.run(0)));
        const auto results = stage.run(1);
        REQUIRE(results[0].failure);
        CHECK(results[0].failure->what.find("were not written to the end") != std::string::npos);
    }
}

TEST_CASE("after a stonewalled write, access whole is refused") {
    Stage stage(plan_of(
        {transfer("w", "write", with(kShared, kAtOnce)), transfer("r", "read", with(kShared, {{"access", "whole"}}))}));
    CHECK_FALSE(failed(stage.run(0)));
    CHECK(failed(stage.run(1)));
}

TEST_CASE("a phase for seconds repeats until they are over") {
    const Json brief = {{"stop", {{"rule", "seconds"}, {"seconds", 0.05}}}, {"segments", 1}};
    Stage stage(plan_of({transfer("w", "write", brief), transfer("r", "read", with(brief, {{"verify", true}}))}, 1));
    const auto written = stage.run(0);
    CHECK(written[0].out_of_time);
    CHECK(written[0].operations > 16);
    CHECK(fs::file_size(stage.path() / "data.0.data") == 65536);
    const auto read = stage.run(1);
    CHECK_FALSE(failed(read));
    CHECK(read[0].operations > 16);
    const Clock& clock = Clock::system();
    CHECK(clock.to_seconds(elapsed(read[0].start, read[0].end)) >= 0.05);
}

TEST_CASE("a second write of a set replaces its files") {
    for (const Json& layout : {Json::object(), kShared}) {
        Stage stage(
            plan_of({transfer("one", "write", layout), transfer("two", "write", with(layout, {{"segments", 1}}))}));
        CHECK_FALSE(failed(stage.run(0)));
        CHECK_FALSE(failed(stage.run(1)));
        const fs::path file = stage.path() / (layout.empty() ? "data.1.data" : "data.data");
        CHECK(fs::file_size(file) == (layout.empty() ? 1 : 2) * 65536);
    }
}

namespace {

// Return the number of 4 KiB blocks that are equal in both.
std::size_t same_blocks(const std::string& one, const std::string& other) {
    std::size_t same = 0;
    for (std::size_t at = 0; at < one.size(); at += 4096) same += one.compare(at, 4096, other, at, 4096) == 0 ? 1 : 0;
    return same;
}

}  // namespace

TEST_CASE("a second write has different data, and a block that was not overwritten is found") {
    // Long enough for one pass on a busy machine.
    const Json some_passes = {{"stop", {{"rule", "seconds"}, {"seconds", 0.5}}}, {"segments", 1}};
    for (const Json& layout : {Json{{"segments", 1}}, with(kShared, {{"segments", 1}}), some_passes}) {
        for (const std::string operation : {"write", "rewrite"}) {
            INFO(layout.dump(), operation);
            // Stop by amount, because a read for some seconds may not reach the block.
            const Json whole = with(layout, {{"verify", true}, {"stop", {{"rule", "amount"}}}});
            Stage stage(plan_of({transfer("one", "write", layout), transfer("two", operation, layout),
                                 transfer("r", "read", whole), transfer("found", "read", whole)}));
            CHECK_FALSE(failed(stage.run(0)));
            const fs::path file = stage.path() / (layout.contains("layout") ? "data.data" : "data.0.data");
            const std::string before = text_of(file);
            CHECK_FALSE(failed(stage.run(1)));
            const std::string after = text_of(file);
            REQUIRE(after.size() == before.size());
            CHECK(same_blocks(before, after) == 0);
            CHECK_FALSE(failed(stage.run(2)));
            constexpr std::size_t kBlock = std::size_t{5} * 4096;
            const Descriptor lost(::open(file.c_str(), O_RDWR));
            REQUIRE(::pwrite(lost.get(), before.data() + kBlock, 4096, kBlock) == 4096);
            const auto results = stage.run(3);
            REQUIRE(results[0].failure);
            // The first byte that differs may come later in the block.
            CHECK(results[0].failure->offset_bytes.value_or(0) / 4096 == kBlock / 4096);
        }
    }
}

TEST_CASE("data that were partly overwritten, in any order and geometry, are correct for every reader") {
    const std::vector<Json> geometries{{{"access", "segmented"}},
                                       {{"access", "strided"}},
                                       {{"access", "random"}, {"transfer_bytes", 8192}},
                                       {{"access", "draws"}, {"stop", {{"rule", "seconds"}, {"seconds", 0.01}}}},
                                       {{"access", "segmented"}, {"segments", 2}},
                                       {{"access", "random"}, {"stop", {{"rule", "seconds"}, {"seconds", 0.01}}}},
                                       with({{"access", "strided"}}, kAtOnce)};
    for (const Json& layout : {Json::object(), kShared}) {
        for (const Json& first : geometries) {
            for (const Json& second : geometries) {
                if (layout.empty() && (first["access"] == "strided" || second["access"] == "strided")) continue;
                INFO(layout.dump(), first.dump(), second.dump());
                const Json check = with(layout, {{"verify", true}});
                Stage stage(plan_of({transfer("w", "write", layout), transfer("a", "rewrite", with(layout, first)),
                                     transfer("m", "mixed", with(check, with(second, {{"read_percent", 30}}))),
                                     transfer("b", "rewrite", with(layout, second)), transfer("r", "read", check),
                                     transfer("odd", "read", with(check, {{"transfer_bytes", 65536}}))}));
                for (std::size_t phase = 0; phase < 6; ++phase) CHECK_FALSE(failed(stage.run(phase)));
            }
        }
    }
}

TEST_CASE("preallocated files have their full size although the phase stops early") {
    for (const Json& layout : {Json::object(), kShared}) {
        Stage stage(
            plan_of({transfer("w", "write", with(layout, {{"preallocate", true}, {"stop", kAtOnce["stop"]}}))}));
        CHECK_FALSE(failed(stage.run(0)));
        const fs::path file = stage.path() / (layout.empty() ? "data.0.data" : "data.data");
        CHECK(fs::file_size(file) == (layout.empty() ? 1 : 2) * 4 * 65536);
    }
}

TEST_CASE("with rank_shift, a rank reports the page cache of the file that it wrote") {
    const Json all = {{"preallocate", true}, {"rank_shift", 1}, {"cache", "drop"}};
    Stage stage(
        plan_of({transfer("w", "write", all), transfer("r", "read", {{"verify", true}, {"cache", "drop"}})}, 3));
    const auto written = stage.run(0);
    CHECK_FALSE(failed(written));
    for (const RankResult& result : written) CHECK(result.cache.file_bytes == 4 * 65536);
    CHECK_FALSE(failed(stage.run(1)));
}

TEST_CASE("opening, synchronising and closing can be inside or outside the phase, and are measured for every rank") {
    for (const std::string sync : {"none", "close", "fsync"}) {
        for (const bool time_open : {false, true}) {
            Stage stage(plan_of({transfer("w", "write", {{"sync", sync}, {"time_open", time_open}})}));
            for (const RankResult& result : stage.run(0)) {
                CHECK_FALSE(result.failure);
                CHECK(result.open > 0);
                CHECK(result.close > 0);
                CHECK(result.end - result.start >= result.slowest);
            }
        }
    }
}

TEST_CASE("dropped pages are not in the page cache before the phase, if the file system uses it") {
    Stage stage(
        plan_of({transfer("w", "write"), transfer("r", "read", {{"cache", "drop"}}), transfer("r2", "read")}, 1));
    const auto written = stage.run(0);
    CHECK(written[0].cache.file_bytes == 4 * 65536);
    CHECK(written[0].cache.resident_before_bytes == 0);
    const auto dropped = stage.run(1);
    CHECK_FALSE(failed(dropped));
    CHECK(dropped[0].cache.resident_before_bytes <= written[0].cache.resident_after_bytes);
    CHECK(dropped[0].cache.resident_after_bytes >= dropped[0].cache.resident_before_bytes);
}

TEST_CASE("O_DIRECT is read back from the descriptor") {
    Stage stage(plan_of({transfer("w", "write", {{"direct", true}}), transfer("r", "read")}, 1));
    const auto written = stage.run(0);
    if (written[0].failure) {
        CHECK(written[0].failure->what == "this file system does not support O_DIRECT");
        return;
    }
    CHECK(written[0].direct);
    CHECK_FALSE(stage.run(1)[0].direct);
}

TEST_CASE("a symbolic link in place of a data file is not followed") {
    const TestDirectory outside;
    std::ofstream(outside.path() / "precious") << "x";
    for (const Json& layout : {Json::object(), kShared}) {
        Stage stage(plan_of({transfer("w", "write", layout)}, 1));
        fs::create_symlink(outside.path() / "precious", stage.path() / (layout.empty() ? "data.0.data" : "data.data"));
        static_cast<void>(stage.run(0));
        CHECK(fs::file_size(outside.path() / "precious") == 1);
    }
}

TEST_CASE("ranks start no operation after a halt") {
    Stage stage(plan_of({transfer("w", "write")}));
    stage.halt = Halt::cancel;
    const auto results = stage.run(0);
    CHECK(operations(results) == 0);
    CHECK_FALSE(failed(results));
}
