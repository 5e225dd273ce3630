// Metadata operations: the items that they create, access and leave.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "measure/clock.hpp"
#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

struct Found {
    int files = 0;
    int directories = 0;
    std::uintmax_t bytes = 0;
};

// Count the items below the stage's directory, without the directories of the trees.
Found items_in(const Stage& stage) {
    Found found;
    for (const auto& entry : fs::recursive_directory_iterator(stage.path())) {
        const std::string name = entry.path().filename();
        if (entry.is_regular_file() && name != ".strakes-marker") {
            ++found.files;
            found.bytes += entry.file_size();
        }
        if (entry.is_directory() && (name.starts_with('d') || name.starts_with('e'))) ++found.directories;
    }
    return found;
}

std::uint64_t run_well(Stage& stage, std::size_t phase) {
    std::uint64_t operations = 0;
    for (const RankResult& result : stage.run(phase)) {
        CHECK_FALSE(result.failure);
        if (result.failure) MESSAGE(result.failure->what, " ", result.failure->path, " ", result.failure->why);
        operations += result.operations;
    }
    return operations;
}

Json with(Json one, const Json& more) {
    one.update(more);
    return one;
}

// Stop after the first operation.
const Json kAtOnce = {{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}};

}  // namespace

TEST_CASE("all operations on files work in every kind of tree, and leave only the tree") {
    for (const std::string directory : {"unique", "shared"}) {
        for (const int depth : {0, 1, 3}) {
            INFO(directory, " ", depth);
            const Json tree = {
                {"directory", directory}, {"depth", depth}, {"branch", 3}, {"file_bytes", 3901}, {"items", 40}};
            const Json next = with(tree, {{"rank_shift", 1}});
            Stage stage(plan_of({metadata("create", "file-create", tree), metadata("stat", "file-stat", next),
                                 metadata("open", "file-open-close", next), metadata("read", "file-read", next),
                                 metadata("rename", "file-rename", next), metadata("stat2", "file-stat", tree),
                                 metadata("rename2", "file-rename", tree), metadata("remove", "file-remove", next)},
                                3));
            CHECK(run_well(stage, 0) == 120);
            CHECK(items_in(stage).files == 120);
            CHECK(items_in(stage).bytes == 120 * 3901);
            for (std::size_t phase = 1; phase < 7; ++phase) CHECK(run_well(stage, phase) == 120);
            CHECK(items_in(stage).files == 120);
            CHECK(run_well(stage, 7) == 120);
            CHECK(items_in(stage).files == 0);
        }
    }
}

TEST_CASE("all operations on directories work, and a set can be created again after its removal") {
    Stage stage(
        plan_of({metadata("create", "dir-create"), metadata("stat", "dir-stat"), metadata("rename", "dir-rename"),
                 metadata("stat2", "dir-stat"), metadata("remove", "dir-remove"), metadata("again", "dir-create"),
                 metadata("stat3", "dir-stat")}));
    for (std::size_t phase = 0; phase < 4; ++phase) CHECK(run_well(stage, phase) == 200);
    CHECK(items_in(stage).directories == 200);
    CHECK(run_well(stage, 4) == 200);
    CHECK(items_in(stage).directories == 0);
    CHECK(run_well(stage, 5) == 200);
    CHECK(run_well(stage, 6) == 200);
}

TEST_CASE("files and directories of one set coexist") {
    Stage stage(
        plan_of({metadata("dirs", "dir-create"), metadata("files", "file-create"), metadata("rmdir", "dir-remove")}));
    run_well(stage, 0);
    run_well(stage, 1);
    CHECK(items_in(stage).directories == 200);
    CHECK(items_in(stage).files == 200);
    run_well(stage, 2);
    CHECK(items_in(stage).directories == 0);
    CHECK(items_in(stage).files == 200);
}

TEST_CASE("mknod creates regular files") {
    Stage stage(
        plan_of({metadata("create", "file-create", {{"create_with", "mknod"}}), metadata("stat", "file-open-close")}));
    CHECK(run_well(stage, 0) == 200);
    CHECK(items_in(stage).files == 200);
    CHECK(run_well(stage, 1) == 200);
}

TEST_CASE("files synchronised before they are closed are complete") {
    const Json small = {{"file_bytes", 100}};
    Json synchronised = small;
    synchronised["fsync"] = true;
    Stage stage(plan_of({metadata("create", "file-create", synchronised), metadata("read", "file-read", small)}));
    CHECK(run_well(stage, 0) == 200);
    CHECK(items_in(stage).bytes == 20'000);
    CHECK(run_well(stage, 1) == 200);
}

TEST_CASE("by absolute paths mknod creates regular files, and synchronised files are complete") {
    const Json absolute = {{"paths", "absolute"}};
    Stage nodes(plan_of({metadata("create", "file-create", with(absolute, {{"create_with", "mknod"}}))}));
    CHECK(run_well(nodes, 0) == 200);
    CHECK(items_in(nodes).files == 200);
    Stage synchronised(
        plan_of({metadata("create", "file-create", with(absolute, {{"file_bytes", 100}, {"fsync", true}}))}));
    CHECK(run_well(synchronised, 0) == 200);
    CHECK(items_in(synchronised).bytes == 20'000);
}

TEST_CASE("files opened read-write may exist already, and must be writable") {
    for (const std::string paths : {"relative", "absolute"}) {
        INFO(paths);
        const Json least = {{"paths", paths}, {"items", 2}};
        const Json both = with(least, {{"open_mode", "read-write"}});
        Stage stage(plan_of({metadata("create", "file-create", both), metadata("open", "file-open-close", least),
                             metadata("open-both", "file-open-close", both)},
                            1));
        CHECK(run_well(stage, 0) == 2);
        CHECK(run_well(stage, 0) == 2);
        CHECK(run_well(stage, 2) == 2);
        fs::remove(stage.path() / "items.0.tree/f0.1");
        fs::create_directory(stage.path() / "items.0.tree/f0.1");
        CHECK(run_well(stage, 1) == 2);
        const auto results = stage.run(2);
        REQUIRE(results[0].failure);
        CHECK(results[0].failure->error_name == "EISDIR");
        CHECK(results[0].failure->path == "stage/items.0.tree/f0.1");
    }
}

TEST_CASE("data larger than the buffer are written and read completely") {
    const Json large = {{"items", 2}, {"file_bytes", 2'500'001}};
    Stage stage(plan_of({metadata("create", "file-create", large), metadata("read", "file-read", large)}, 1));
    const auto created = stage.run(0);
    CHECK(created[0].bytes == 5'000'002);
    CHECK(items_in(stage).bytes == 5'000'002);
    CHECK(stage.run(1)[0].bytes == 5'000'002);
}

TEST_CASE("no two sectors of the data of files are equal") {
    // Larger than the buffer, with a short last sector, and exactly one sector.
    for (const std::uint64_t bytes : {2'500'001U, 3901U, 512U}) {
        const Json data = {{"items", 3}, {"file_bytes", bytes}, {"directory", "shared"}};
        Stage stage(plan_of({metadata("create", "file-create", data),
                             metadata("again", "file-create", with(data, {{"files", "others"}}))},
                            2));
        CHECK(run_well(stage, 0) == 6);
        CHECK(run_well(stage, 1) == 6);
        std::set<std::string> sectors;
        std::size_t count = 0;
        for (const auto& entry : fs::recursive_directory_iterator(stage.path())) {
            std::ifstream file(entry.path(), std::ios::binary);
            for (std::string sector(512, '\0'); entry.is_regular_file() && file; sector.resize(512)) {
                file.read(sector.data(), 512);
                sector.resize(static_cast<std::size_t>(file.gcount()));
                if (sector.size() < 8) break;
                sectors.insert(sector);
                ++count;
            }
        }
        CHECK(count >= 12 * ((bytes + 7) / 512));
        CHECK(sectors.size() == count);
    }
}

TEST_CASE("a file that is shorter than it was written is an error of file-read") {
    const Json small = {{"items", 1}, {"file_bytes", 100}};
    Stage stage(plan_of({metadata("create", "file-create", small), metadata("read", "file-read", small)}, 1));
    run_well(stage, 0);
    fs::resize_file(stage.path() / "items.0.tree/f0.0", 99);
    const auto results = stage.run(1);
    REQUIRE(results[0].failure);
    CHECK(results[0].failure->operation == "read");
    CHECK(results[0].failure->path == "stage/items.0.tree/f0.0");
}

TEST_CASE("after a stonewalled creation only the created items are accessed") {
    Stage stage(plan_of({metadata("create", "file-create", kAtOnce), metadata("stat", "file-stat"),
                         metadata("rename", "file-rename"), metadata("remove", "file-remove")}));
    CHECK(run_well(stage, 0) == 2);
    CHECK(run_well(stage, 1) == 2);
    CHECK(run_well(stage, 2) == 2);
    CHECK(run_well(stage, 3) == 2);
    CHECK(items_in(stage).files == 0);
}

TEST_CASE("renames and removals that end early leave the rest usable") {
    Stage stage(plan_of({metadata("create", "file-create"), metadata("rename", "file-rename", kAtOnce),
                         metadata("stat", "file-stat"), metadata("remove", "file-remove", kAtOnce),
                         metadata("stat2", "file-stat"), metadata("rename2", "file-rename"),
                         metadata("remove2", "file-remove")}));
    CHECK(run_well(stage, 0) == 200);
    CHECK(run_well(stage, 1) == 2);
    CHECK(run_well(stage, 2) == 200);
    CHECK(run_well(stage, 3) == 2);
    CHECK(run_well(stage, 4) == 198);
    CHECK(run_well(stage, 5) == 198);
    CHECK(run_well(stage, 6) == 198);
    CHECK(items_in(stage).files == 0);
}

TEST_CASE("a phase for seconds repeats the items") {
    const Json brief = {{"items", 10}, {"stop", {{"rule", "seconds"}, {"seconds", 0.03}}}};
    Stage stage(plan_of({metadata("create", "file-create", {{"items", 10}}), metadata("stat", "file-stat", brief)}, 1));
    run_well(stage, 0);
    const auto results = stage.run(1);
    CHECK_FALSE(results[0].failure);
    CHECK(results[0].out_of_time);
    CHECK(results[0].operations > 100);
}

TEST_CASE("a missing item is an error with its path, call and error number") {
    const Json tree = {{"depth", 2}, {"branch", 2}, {"items", 8}};
    Stage stage(plan_of({metadata("create", "file-create", tree), metadata("stat", "file-stat", tree)}, 1));
    run_well(stage, 0);
    fs::remove(stage.path() / "items.0.tree/b1/b0/f0.5");
    const auto results = stage.run(1);
    REQUIRE(results[0].failure);
    CHECK(results[0].failure->path == "stage/items.0.tree/b1/b0/f0.5");
    CHECK(results[0].failure->operation == "stat");
    CHECK(results[0].failure->error_name == "ENOENT");
    CHECK(results[0].operations == 5);
}

TEST_CASE("a tree that is a symbolic link is not entered") {
    for (const std::string paths : {"relative", "absolute"}) {
        const TestDirectory outside;
        Stage stage(plan_of({metadata("create", "file-create", {{"paths", paths}})}, 1));
        fs::create_directory_symlink(outside.path(), stage.path() / "items.0.tree");
        const auto results = stage.run(0);
        REQUIRE(results[0].failure);
        CHECK(outside.entries().empty());
    }
}

TEST_CASE("no tree is created after a halt") {
    Stage stage(plan_of({metadata("create", "file-create", {{"depth", 3}, {"branch", 8}})}, 1));
    stage.halt = Halt::cancel;
    const auto results = stage.run(0);
    CHECK_FALSE(results[0].failure);
    CHECK(results[0].operations == 0);
    CHECK(items_in(stage).files == 0);
}

TEST_CASE("a delay follows every operation, and is not in the latencies") {
    Stage stage(plan_of({metadata("create", "file-create", {{"items", 4}, {"delay_ns", 2'000'000}})}, 1));
    const auto results = stage.run(0);
    CHECK(Clock::system().to_ns(elapsed(results[0].start, results[0].end)) >= 8'000'000);
    CHECK(results[0].operations == 4);
}
