// Writers: for all groupings, the files have the data that all ranks would have written themselves.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "support.hpp"
#include "workload/gathering.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

Json with(Json phase, const Json& more) {
    phase.update(more);
    return phase;
}

std::string bytes_of(const fs::path& path) {
    std::string bytes(fs::file_size(path), '\0');
    std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

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
    const TestDirectory directory;  // one for all, because its name determines the data
    for (const std::string access : {"segmented", "strided"}) {
        std::string plain;
        for (const int writers : {0, 1, 2}) {
            for (const std::string backend : {"posix", "mmap"}) {
                INFO(access, " ", writers, " ", backend);
                const Json phase = with(transfer("w", "write", large),
                                        {{"access", access}, {"writers", writers}, {"backend", backend}});
                CHECK(run_kept(directory, plan_of({phase}, 3)).last("done").at("status") == "ok");
                const std::string found = bytes_of(directory.path() / "p" / "data.data");
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
            const Answers answers = run_session(plan_message(
                directory.path(),
                plan_of(
                    {transfer("w", "write",
                              with(merged, {{"writers", 2}, {"stop", {{"rule", "stonewall"}, {"seconds", seconds}}}})),
                     transfer("r", "read", with(merged, {{"verify", true}}))},
                    5)));
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
    const Answers answers = run_session(plan_message(
        place,
        plan_of({transfer("w", "write", {{"layout", "file-per-writer"}, {"writers", 2}, {"block_bytes", 1048576}})},
                6)));
    CHECK(answers.last("done").at("status") == "failed");
    CHECK(answers.last("done").at("cleaned") == true);
    CHECK(answers.last("error").at("errno") == "ENOSPC");
    CHECK(answers.sample("w").at("stopped_by") == "error");
}
