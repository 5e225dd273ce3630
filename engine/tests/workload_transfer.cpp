// Transfers: data are read as written, wrong data are found at their offset, and holes are counted. Writers: for all
// groupings, the files have the data that all ranks would have written themselves.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "support.hpp"
#include "system/descriptor.hpp"
#include "system/queries.hpp"
#include "workload/gathering.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

const Json kShared = {{"layout", "shared-file"}};

bool failed(const std::vector<RankResult>& results) { return sum_of(results).failed; }

}  // namespace

TEST_CASE("data written in any access are verified in any other access") {
    for (const std::string written : {"segmented", "strided", "random"}) {
        for (const std::string read : {"segmented", "strided", "random", "whole"}) {
            INFO(written, " then ", read);
            Stage stage(2, {transfer("w", "write", with(kShared, {{"access", written}})),
                            transfer("r", "read",
                                     with(kShared, {{"access", read}, {"verify", true}, {"transfer_bytes", 8192}}))});
            CHECK_FALSE(failed(stage.run(0)));
            CHECK(fs::file_size(stage.path() / "data.data") == 2 * 4 * 65536);
            const auto results = stage.run(1);
            CHECK_FALSE(failed(results));
            CHECK(sum_of(results).verified == (read == "whole" ? 2 : 1) * 2 * 4 * 65536);
        }
    }
}

TEST_CASE("a rank can read the data of another one") {
    Stage stage(3, {transfer("w", "write"),
                    transfer("r", "read", {{"rank_shift", 4}, {"verify", true}, {"access", "random"}})});
    CHECK_FALSE(failed(stage.run(0)));
    CHECK_FALSE(failed(stage.run(1)));
}

TEST_CASE("a mixed phase reads and writes its shares, and the data remain correct") {
    Stage stage(
        1, {transfer("w", "write", {{"segments", 64}}),
            transfer("m", "mixed", {{"segments", 64}, {"read_percent", 70}, {"verify", true}, {"access", "random"}}),
            transfer("r", "read", {{"segments", 64}, {"verify", true}})});
    CHECK_FALSE(failed(stage.run(0)));
    const auto mixed = stage.run(1);
    CHECK_FALSE(failed(mixed));
    CHECK(operations(mixed) == 1024);
    CHECK(sum_of(mixed).verified > 1024 * 4096 * 0.65);
    CHECK(sum_of(mixed).verified < 1024 * 4096 * 0.75);
    CHECK_FALSE(failed(stage.run(2)));
}

TEST_CASE("a mixed phase that repeats does not always write the same transfers") {
    const Json brief = {{"segments", 1}};
    Stage stage(
        1, {transfer("w", "write", brief), transfer("m", "mixed",
                                                    with(brief, {{"read_percent", 50},
                                                                 {"pattern", "once"},
                                                                 {"stop", {{"rule", "seconds"}, {"seconds", 0.2}}}}))});
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

TEST_CASE("after a stonewalled write in order, another geometry reads the data that exist") {
    const std::vector<std::pair<Json, std::uint64_t>> others{{Json{{"access", "random"}}, 2},
                                                             {Json{{"transfer_bytes", 8192}}, 0},
                                                             {Json{{"transfer_bytes", 1024}}, 8},
                                                             {Json{{"transfer_bytes", 512}, {"access", "random"}}, 16},
                                                             {Json{{"segments", 2}}, 2}};
    for (const auto& [other, there] : others) {
        Json verified = other;
        verified["verify"] = true;
        Stage stage(2, {transfer("w", "write", kAtOnce), transfer("r", "read", verified)});
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
        Stage stage(2, {transfer("w", "write", write), transfer("r", "read", read)});
        CHECK_FALSE(failed(stage.run(0)));
        const auto results = stage.run(1);
        REQUIRE(results[0].failure);
        CHECK(results[0].failure->what.find("were not written to the end") != std::string::npos);
    }
}

TEST_CASE("after a stonewalled write, access whole is refused") {
    Stage stage(2, {transfer("w", "write", with(kShared, kAtOnce)),
                    transfer("r", "read", with(kShared, {{"access", "whole"}}))});
    CHECK_FALSE(failed(stage.run(0)));
    CHECK(failed(stage.run(1)));
}

TEST_CASE("a second write of a set replaces its files") {
    for (const Json& layout : {Json::object(), kShared}) {
        Stage stage(2, {transfer("one", "write", layout), transfer("two", "write", with(layout, {{"segments", 1}}))});
        CHECK_FALSE(failed(stage.run(0)));
        CHECK_FALSE(failed(stage.run(1)));
        const fs::path file = stage.path() / (layout.empty() ? "data.1.data" : "data.data");
        CHECK(fs::file_size(file) == (layout.empty() ? 1 : 2) * 65536);
    }
}

namespace {

// Return the number of 4 KiB blocks that are equal in both texts.
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
            Stage stage(2, {transfer("one", "write", layout), transfer("two", operation, layout),
                            transfer("r", "read", whole), transfer("found", "read", whole)});
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
                Stage stage(2, {transfer("w", "write", layout), transfer("a", "rewrite", with(layout, first)),
                                transfer("m", "mixed", with(check, with(second, {{"read_percent", 30}}))),
                                transfer("b", "rewrite", with(layout, second)), transfer("r", "read", check),
                                transfer("odd", "read", with(check, {{"transfer_bytes", 65536}}))});
                for (std::size_t phase = 0; phase < 6; ++phase) CHECK_FALSE(failed(stage.run(phase)));
            }
        }
    }
}

TEST_CASE("preallocated files have their full size although the phase stops early") {
    for (const Json& layout : {Json::object(), kShared}) {
        Stage stage(2, {transfer("w", "write", with(layout, {{"preallocate", true}, {"stop", kAtOnce["stop"]}}))});
        CHECK_FALSE(failed(stage.run(0)));
        const fs::path file = stage.path() / (layout.empty() ? "data.0.data" : "data.data");
        CHECK(fs::file_size(file) == (layout.empty() ? 1 : 2) * 4 * 65536);
    }
}

TEST_CASE("with rank_shift, a rank reports the page cache of the file that it wrote") {
    const Json all = {{"preallocate", true}, {"rank_shift", 1}, {"cache", "drop"}};
    Stage stage(3, {transfer("w", "write", all), transfer("r", "read", {{"verify", true}, {"cache", "drop"}})});
    const auto written = stage.run(0);
    CHECK_FALSE(failed(written));
    for (const RankResult& result : written) CHECK(result.cache.file_bytes == 4 * 65536);
    CHECK_FALSE(failed(stage.run(1)));
}

TEST_CASE("dropped pages are not in the page cache before the phase, if the file system uses it") {
    Stage stage(1, {transfer("w", "write"), transfer("r", "read", {{"cache", "drop"}}), transfer("r2", "read")});
    const auto written = stage.run(0);
    CHECK(written[0].cache.file_bytes == 4 * 65536);
    CHECK(written[0].cache.resident_before_bytes == 0);
    const auto dropped = stage.run(1);
    CHECK_FALSE(failed(dropped));
    CHECK(dropped[0].cache.resident_before_bytes <= written[0].cache.resident_after_bytes);
    CHECK(dropped[0].cache.resident_after_bytes >= dropped[0].cache.resident_before_bytes);
}

TEST_CASE("a symbolic link in place of a data file is not followed") {
    const TestDirectory outside;
    std::ofstream(outside.path() / "precious") << "x";
    for (const Json& layout : {Json::object(), kShared}) {
        Stage stage(1, {transfer("w", "write", layout)});
        fs::create_symlink(outside.path() / "precious", stage.path() / (layout.empty() ? "data.0.data" : "data.data"));
        static_cast<void>(stage.run(0));
        CHECK(fs::file_size(outside.path() / "precious") == 1);
    }
}

TEST_CASE("holes of a file are counted, and so is the range beyond its end") {
    const TestDirectory place;
    const Mount mount(place.path(), "size=8m");  // tmpfs reports holes page by page
    if (!mount.is_there()) return;
    constexpr std::uint64_t kPage = 65536;
    const Descriptor file(::open((place.path() / "file").c_str(), O_RDWR | O_CREAT, 0600));
    const std::string data(kPage, 'x');
    for (const std::uint64_t page : {1U, 2U, 5U})
        REQUIRE(::pwrite(file.get(), data.data(), data.size(), static_cast<off_t>(page * kPage)) == kPage);
    CHECK(hole_bytes(file.get(), kPage, 3 * kPage) == 0);
    CHECK(hole_bytes(file.get(), 0, 3 * kPage) == kPage);
    CHECK(hole_bytes(file.get(), kPage, 6 * kPage) == 2 * kPage);
    CHECK(hole_bytes(file.get(), 3 * kPage, 4 * kPage) == kPage);
    CHECK(hole_bytes(file.get(), 0, 10 * kPage) == 7 * kPage);
    CHECK(hole_bytes(file.get(), 8 * kPage, 9 * kPage) == kPage);
}

namespace {

Answers run_kept(const TestDirectory& directory, const Json& plan) {
    return run_session(plan_message(directory.path(), plan, {{"keep", true}}));
}

}  // namespace

TEST_CASE("every rank is in one group, and the first member of each group writes") {
    const std::vector<std::uint32_t> nodes{0, 0, 0, 0, 0, 1, 2, 2, 2};
    for (const Grouping grouping : {Grouping::node, Grouping::global}) {
        for (std::uint32_t writers = 1; writers <= nodes.size(); ++writers) {
            TransferPhase phase;
            phase.writers = writers;
            phase.grouping = grouping;
            std::set<std::uint32_t> groups, members;
            for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) {
                INFO("rank ", rank, " of ", writers, " writers");
                const Group group = group_of(phase, nodes, rank);
                CHECK(group.members[group.place_of(rank)] == rank);
                CHECK(group_of(phase, nodes, group.writer()).members == group.members);
                if (grouping == Grouping::node)
                    for (const std::uint32_t other : group.members) CHECK(nodes[other] == nodes[rank]);
                if (groups.insert(group.number).second) members.insert(group.members.begin(), group.members.end());
            }
            CHECK(members.size() == nodes.size());
            CHECK(*groups.rbegin() + 1 == groups.size());
            if (grouping == Grouping::global) CHECK(groups.size() == writers);
            if (grouping == Grouping::node) CHECK(groups.size() == std::min(writers, 5U) + 1 + std::min(writers, 3U));
        }
    }
}

TEST_CASE("16 ranks with 2 writers: merged files verify, read by all ranks in every access") {
    for (const std::string layout : {"shared-file", "file-per-writer"}) {
        for (const std::string access : {"segmented", "strided"}) {
            INFO(layout, " ", access);
            const Json merged = {{"layout", layout}, {"access", access}, {"writers", 2}};
            Json read = {{"layout", layout}, {"verify", true}, {"transfer_bytes", 8192}};
            if (layout == "file-per-writer") read["writers"] = 2;
            const TestDirectory directory;
            const Answers all = run_kept(
                directory,
                plan_of({transfer("w", "write", merged), transfer("same", "read", with(read, {{"access", access}})),
                         transfer("moved", "read", with(read, {{"access", "random"}, {"rank_shift", 3}}))},
                        16));
            CHECK(all.last("done").at("status") == "ok");
            const Json written = all.sample("w");
            constexpr std::uint64_t kAll = std::uint64_t{16} * 4 * 65536;
            CHECK(written.at("bytes") == kAll);
            CHECK(written.at("operations") == kAll / 4096);
            for (const Json& row : written.at("ranks")) CHECK((row[3] != 0) == (row[0] == 0 || row[0] == 8));
            CHECK(written.at("histograms").contains("gather"));
            CHECK(all.sample("same").at("effective").at("verified_bytes") == kAll);
            CHECK(all.sample("moved").at("effective").at("verified_bytes") == kAll);
            const auto files = std::distance(fs::directory_iterator(directory.path() / "p"), fs::directory_iterator());
            CHECK(files == (layout == "shared-file" ? 1 : 2));
        }
    }
}

TEST_CASE("a shared file is byte for byte the same for any number of writers") {
    // Several pieces per run, the last one shorter than the others.
    const Json large = {
        {"layout", "shared-file"}, {"transfer_bytes", 196608}, {"block_bytes", 2752512}, {"segments", 2}};
    const TestDirectory directory;  // one directory for all runs, because its name determines the data
    for (const std::string access : {"segmented", "strided"}) {
        std::string plain;
        for (const int writers : {0, 1, 2}) {
            for (const std::string backend : {"posix", "mmap"}) {
                INFO(access, " ", writers, " ", backend);
                const Json phase = with(transfer("w", "write", large),
                                        {{"access", access}, {"writers", writers}, {"backend", backend}});
                CHECK(run_kept(directory, plan_of({phase}, 3)).last("done").at("status") == "ok");
                const std::string found = text_of(directory.path() / "p" / "data.data");
                CHECK(found.size() == std::size_t{3} * 2 * 2752512);
                if (plain.empty()) plain = found;
                CHECK((found == plain));
                fs::remove_all(directory.path() / "p");
            }
        }
    }
}

TEST_CASE("a write that runs out of time leaves data that later reads of the same ranks verify") {
    for (const std::string access : {"segmented", "strided"}) {
        for (const double seconds : {1e-9, 0.002, 0.01}) {
            INFO(access, " ", seconds);
            const Json merged = {{"layout", "shared-file"}, {"access", access}, {"block_bytes", 4194304}};
            const TestDirectory directory;
            const Answers answers = run_plan(
                directory.path(), 5,
                {transfer("w", "write",
                          with(merged, {{"writers", 2}, {"stop", {{"rule", "stonewall"}, {"seconds", seconds}}}})),
                 transfer("r", "read", with(merged, {{"verify", true}}))});
            CHECK(answers.last("done").at("status") == "ok");
            CHECK(answers.sample("w").at("bytes") == answers.sample("r").at("effective").at("verified_bytes"));
        }
    }
}

TEST_CASE("a writer that meets a full file system ends the phase for its members") {
    const TestDirectory directory;
    const fs::path place = directory.path() / "full";
    fs::create_directory(place);
    const Mount mount(place, "size=4m");
    if (!mount.is_there()) return;
    const Answers answers = run_plan(
        place, 6, {transfer("w", "write", {{"layout", "file-per-writer"}, {"writers", 2}, {"block_bytes", 1048576}})});
    CHECK(answers.last("done").at("status") == "failed");
    CHECK(answers.last("done").at("cleaned") == true);
    CHECK(answers.last("error").at("errno") == "ENOSPC");
    CHECK(answers.sample("w").at("stopped_by") == "error");
}
