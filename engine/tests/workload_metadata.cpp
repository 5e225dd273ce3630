// Metadata operations: the items that they create, access and leave, and the changes that they make to items.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backend/registry.hpp"
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

}  // namespace

TEST_CASE("all operations on files work in every kind of tree, and leave only the tree") {
    for (const std::string directory : {"unique", "shared"}) {
        for (const int depth : {0, 1, 3}) {
            INFO(directory, " ", depth);
            const Json tree = {
                {"directory", directory}, {"depth", depth}, {"branch", 3}, {"file_bytes", 3901}, {"items", 40}};
            const Json next = with(tree, {{"rank_shift", 1}});
            Stage stage(3, {metadata("create", "file-create", tree), metadata("stat", "file-stat", next),
                            metadata("open", "file-open-close", next), metadata("read", "file-read", next),
                            metadata("rename", "file-rename", next), metadata("stat2", "file-stat", tree),
                            metadata("rename2", "file-rename", tree), metadata("remove", "file-remove", next)});
            CHECK(operations(run_well(stage, 0)) == 120);
            CHECK(items_in(stage).files == 120);
            CHECK(items_in(stage).bytes == 120 * 3901);
            for (std::size_t phase = 1; phase < 7; ++phase) CHECK(operations(run_well(stage, phase)) == 120);
            CHECK(items_in(stage).files == 120);
            CHECK(operations(run_well(stage, 7)) == 120);
            CHECK(items_in(stage).files == 0);
        }
    }
}

TEST_CASE("all operations on directories work, and a set can be created again after its removal") {
    Stage stage(2, {metadata("create", "dir-create"), metadata("stat", "dir-stat"), metadata("rename", "dir-rename"),
                    metadata("stat2", "dir-stat"), metadata("remove", "dir-remove"), metadata("again", "dir-create"),
                    metadata("stat3", "dir-stat")});
    for (std::size_t phase = 0; phase < 4; ++phase) CHECK(operations(run_well(stage, phase)) == 200);
    CHECK(items_in(stage).directories == 200);
    CHECK(operations(run_well(stage, 4)) == 200);
    CHECK(items_in(stage).directories == 0);
    CHECK(operations(run_well(stage, 5)) == 200);
    CHECK(operations(run_well(stage, 6)) == 200);
}

TEST_CASE("files and directories of one set coexist") {
    Stage stage(2, {metadata("dirs", "dir-create"), metadata("files", "file-create"), metadata("rmdir", "dir-remove")});
    run_well(stage, 0);
    run_well(stage, 1);
    CHECK(items_in(stage).directories == 200);
    CHECK(items_in(stage).files == 200);
    run_well(stage, 2);
    CHECK(items_in(stage).directories == 0);
    CHECK(items_in(stage).files == 200);
}

TEST_CASE("mknod creates regular files") {
    Stage stage(2,
                {metadata("create", "file-create", {{"create_with", "mknod"}}), metadata("stat", "file-open-close")});
    CHECK(operations(run_well(stage, 0)) == 200);
    CHECK(items_in(stage).files == 200);
    CHECK(operations(run_well(stage, 1)) == 200);
}

TEST_CASE("files synchronised before they are closed are complete") {
    const Json small = {{"file_bytes", 100}};
    Json synchronised = small;
    synchronised["fsync"] = true;
    Stage stage(2, {metadata("create", "file-create", synchronised), metadata("read", "file-read", small)});
    CHECK(operations(run_well(stage, 0)) == 200);
    CHECK(items_in(stage).bytes == 20'000);
    CHECK(operations(run_well(stage, 1)) == 200);
}

TEST_CASE("by every kind of path, items are those of the opened directory, whatever its name shows") {
    for (const std::string paths : {"relative", "absolute", "mdtest"}) {
        INFO(paths);
        const auto phase = [&](const char* name, const char* operation, const Json& more = Json::object()) {
            return metadata(name, operation, with({{"paths", paths}, {"items", 3}, {"file_bytes", 100}}, more));
        };
        Stage stage(1, {phase("create", "file-create"), phase("stat", "file-stat"), phase("mode", "file-chmod"),
                        phase("cut", "file-truncate", {{"truncate_bytes", 10}}), phase("rename", "file-rename"),
                        phase("remove", "file-remove")});
        run_well(stage, 0);
        CHECK(items_in(stage).bytes == 300);
        const TestDirectory others;
        for (const char* name : {"f0.0", "f0.1", "f0.2", "g0.0", "g0.1", "g0.2"})
            std::ofstream(others.path() / name) << "of another user";
        {
            const Mount decoy(stage.path(), "mode=700");
            if (!decoy.is_there()) return;
            fs::create_directory_symlink(others.path(), stage.path() / "items.0.tree");
            for (std::size_t one = 1; one <= 5; ++one) CHECK(operations(run_well(stage, one)) == 3);
        }
        CHECK(items_in(stage).files == 0);
        CHECK(others.entries().size() == 6);
        for (const std::string& name : others.entries()) {
            CHECK(text_of(others.path() / name) == "of another user");
            CHECK((fs::status(others.path() / name).permissions() & fs::perms::others_exec) == fs::perms::none);
        }
    }
}

TEST_CASE("by absolute paths mknod creates regular files, and synchronised files are complete") {
    const Json absolute = {{"paths", "absolute"}};
    Stage nodes(2, {metadata("create", "file-create", with(absolute, {{"create_with", "mknod"}}))});
    CHECK(operations(run_well(nodes, 0)) == 200);
    CHECK(items_in(nodes).files == 200);
    Stage synchronised(2, {metadata("create", "file-create", with(absolute, {{"file_bytes", 100}, {"fsync", true}}))});
    CHECK(operations(run_well(synchronised, 0)) == 200);
    CHECK(items_in(synchronised).bytes == 20'000);
}

TEST_CASE("files opened read-write may exist already, and must be writable") {
    for (const std::string paths : {"relative", "absolute"}) {
        INFO(paths);
        const Json least = {{"paths", paths}, {"items", 2}};
        const Json both = with(least, {{"open_mode", "read-write"}});
        Stage stage(1, {metadata("create", "file-create", both), metadata("open", "file-open-close", least),
                        metadata("open-both", "file-open-close", both)});
        CHECK(operations(run_well(stage, 0)) == 2);
        CHECK(operations(run_well(stage, 0)) == 2);
        CHECK(operations(run_well(stage, 2)) == 2);
        fs::remove(stage.path() / "items.0.tree/f0.1");
        fs::create_directory(stage.path() / "items.0.tree/f0.1");
        CHECK(operations(run_well(stage, 1)) == 2);
        const auto results = stage.run(2);
        REQUIRE(results[0].failure);
        CHECK(results[0].failure->error_name == "EISDIR");
        CHECK(results[0].failure->path == "stage/items.0.tree/f0.1");
    }
}

TEST_CASE("no two sectors of the data of files are equal") {
    // Files larger than the buffer, with a short last sector, and of exactly one sector.
    for (const std::uint64_t bytes : {2'500'001U, 3901U, 512U}) {
        const Json data = {{"items", 3}, {"file_bytes", bytes}, {"directory", "shared"}};
        Stage stage(2, {metadata("create", "file-create", data),
                        metadata("again", "file-create", with(data, {{"files", "others"}}))});
        CHECK(operations(run_well(stage, 0)) == 6);
        CHECK(operations(run_well(stage, 1)) == 6);
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

TEST_CASE("after a stonewalled creation only the created items are accessed") {
    Stage stage(2, {metadata("create", "file-create", kAtOnce), metadata("stat", "file-stat"),
                    metadata("rename", "file-rename"), metadata("remove", "file-remove")});
    CHECK(operations(run_well(stage, 0)) == 2);
    CHECK(operations(run_well(stage, 1)) == 2);
    CHECK(operations(run_well(stage, 2)) == 2);
    CHECK(operations(run_well(stage, 3)) == 2);
    CHECK(items_in(stage).files == 0);
}

TEST_CASE("a tree that is a symbolic link is not entered") {
    for (const std::string paths : {"relative", "absolute"}) {
        const TestDirectory outside;
        Stage stage(1, {metadata("create", "file-create", {{"paths", paths}})});
        fs::create_directory_symlink(outside.path(), stage.path() / "items.0.tree");
        const auto results = stage.run(0);
        REQUIRE(results[0].failure);
        CHECK(outside.entries().empty());
    }
}

TEST_CASE("no tree is created after a halt") {
    Stage stage(1, {metadata("create", "file-create", {{"depth", 3}, {"branch", 8}})});
    stage.halt = Halt::cancel;
    const auto results = stage.run(0);
    CHECK_FALSE(results[0].failure);
    CHECK(results[0].operations == 0);
    CHECK(items_in(stage).files == 0);
}

namespace {

Listed listed(const std::vector<RankResult>& results) {
    Listed sum;
    for (const RankResult& result : results) sum.add(result.listed);
    return sum;
}

struct Seen {
    mode_t mode;
    std::uint64_t links, bytes;
    std::string attribute;
};

// Files by path relative to the stage's directory.
std::map<std::string, Seen> items_of(const Stage& stage) {
    std::map<std::string, Seen> items;
    for (const auto& entry : fs::recursive_directory_iterator(stage.path())) {
        if (!entry.is_regular_file() || entry.path().filename() == ".strakes-marker") continue;
        struct stat status{};
        REQUIRE(::lstat(entry.path().c_str(), &status) == 0);
        std::array<char, 4096> value{};
        const ssize_t bytes = ::getxattr(entry.path().c_str(), "user.strakes", value.data(), value.size());
        items[fs::relative(entry.path(), stage.path())] = {
            status.st_mode & 07777U, status.st_nlink, static_cast<std::uint64_t>(status.st_size),
            bytes < 0 ? "" : std::string(value.data(), static_cast<std::size_t>(bytes))};
    }
    return items;
}

void for_every_path(auto body) {
    for (const char* paths : {"relative", "absolute", "mdtest"}) {
        INFO(paths);
        body(Json{{"paths", paths}, {"items", 30}, {"depth", 1}, {"branch", 3}, {"file_bytes", 1000}});
    }
}

}  // namespace

TEST_CASE("chmod changes the mode of every file, and the owner may still read it") {
    for_every_path([](const Json& tree) {
        Stage stage(2, {metadata("create", "file-create", tree), metadata("first", "file-chmod", tree),
                        metadata("second", "file-chmod", with(tree, {{"rank_shift", 1}})),
                        metadata("read", "file-read", tree)});
        run_well(stage, 0);
        std::map<std::string, Seen> before = items_of(stage);
        for (const std::size_t phase : {1U, 2U}) {
            CHECK(operations(run_well(stage, phase)) == 60);
            std::map<std::string, Seen> after = items_of(stage);
            for (const auto& [name, item] : after) {
                CHECK(item.mode != before.at(name).mode);
                CHECK((item.mode & 0700U) == 0600U);
            }
            before = std::move(after);
        }
        CHECK(operations(run_well(stage, 3)) == 60);
    });
}

TEST_CASE("link gives every file a second name, also after renames") {
    for_every_path([](const Json& tree) {
        const Json half = with(tree, {{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}});
        Stage stage(2, {metadata("create", "file-create", tree), metadata("rename", "file-rename", half),
                        metadata("link", "file-link", with(tree, {{"rank_shift", 1}})),
                        metadata("remove", "file-remove", tree)});
        run_well(stage, 0);
        CHECK(operations(run_well(stage, 1)) == 2);
        CHECK(operations(run_well(stage, 2)) == 60);
        const auto linked = items_of(stage);
        CHECK(linked.size() == 120);
        for (const auto& [name, item] : linked) CHECK(item.links == 2);
        CHECK(operations(run_well(stage, 3)) == 60);
        for (const auto& [name, item] : items_of(stage)) {
            CHECK(item.links == 1);
            CHECK(fs::path(name).filename().string().front() == 'l');
        }
    });
}

TEST_CASE("truncate sets every file to the requested length, shorter or longer") {
    for_every_path([](const Json& tree) {
        for (const std::uint64_t bytes : {0U, 10U, 5000U}) {
            Stage stage(2, {metadata("create", "file-create", tree),
                            metadata("cut", "file-truncate", with(tree, {{"truncate_bytes", bytes}}))});
            run_well(stage, 0);
            CHECK(operations(run_well(stage, 1)) == 60);
            const auto cut = items_of(stage);
            CHECK(cut.size() == 60);
            for (const auto& [name, item] : cut) CHECK(item.bytes == bytes);
        }
    });
}

TEST_CASE("extended attributes have the requested length, and are read only where they were set") {
    for_every_path([](const Json& tree) {
        const Json value = with(tree, {{"xattr_bytes", 300}});
        const Json at_once = with(value, {{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}});
        Stage stage(2, {metadata("create", "file-create", tree), metadata("some", "file-setxattr", at_once),
                        metadata("read-some", "file-getxattr", with(value, {{"rank_shift", 1}})),
                        metadata("all", "file-setxattr", value),
                        metadata("read-all", "file-getxattr", with(value, {{"share", "all"}}))});
        run_well(stage, 0);
        CHECK(operations(run_well(stage, 1)) == 2);
        CHECK(operations(run_well(stage, 2)) == 2);
        CHECK(operations(run_well(stage, 3)) == 60);
        CHECK(operations(run_well(stage, 4)) == 120);
        const auto items = items_of(stage);
        CHECK(items.size() == 60);
        for (const auto& [name, item] : items) CHECK(item.attribute.size() == 300);
        const fs::path damaged = stage.path() / items.begin()->first;
        REQUIRE(::setxattr(damaged.c_str(), "user.strakes", "short", 5, 0) == 0);
        const auto results = stage.run(4);
        REQUIRE(results[0].failure);
        CHECK(results[0].failure->path == "stage/" + items.begin()->first);
        CHECK(results[0].failure->error_name == "ENODATA");
        CHECK(results[0].failure->operation == "fgetxattr");
    });
}

TEST_CASE("in random order every item comes once in a pass, and rarely at its own position") {
    std::vector<Json> ways{{{"backend", "posix"}}, {{"backend", "raw"}}, {{"paths", "absolute"}}};
    for (const Json& way : ways) {
        INFO(way.dump());
        std::set<std::uint64_t> places;
        int unmoved = 0;
        for (int gone = 0; gone < 16; ++gone) {
            const Json tree = with(way, {{"items", 16}, {"depth", 1}, {"branch", 3}});
            Stage stage(1, {metadata("create", "file-create", tree),
                            metadata("stat", "file-stat", with(tree, {{"order", "random"}}))});
            run_well(stage, 0);
            const std::string name = "f0." + std::string(gone < 10 ? "0" : "") + std::to_string(gone);
            for (const auto& [path, item] : items_of(stage))
                if (path.ends_with(name)) fs::remove(stage.path() / path);
            const auto results = stage.run(1);
            REQUIRE(results[0].failure);
            CHECK(results[0].failure->path.ends_with(name));
            if (results[0].operations == static_cast<std::uint64_t>(gone)) ++unmoved;
            places.insert(results[0].operations);
        }
        CHECK(unmoved <= 4);         // 1 on average
        CHECK(places.size() == 16);  // a permutation: each position once
    }
}

TEST_CASE("in random order a phase for seconds makes several passes") {
    const Json tree{{"items", 64}};
    Json brief = with(tree, {{"order", "random"}, {"stop", {{"rule", "seconds"}, {"seconds", 0.03}}}});
    Stage stage(2, {metadata("create", "file-create", tree), metadata("stat", "file-stat", brief)});
    run_well(stage, 0);
    CHECK(operations(run_well(stage, 1)) > 2 * 128);
}

TEST_CASE("a listing returns every entry once, or once for each rank with share all") {
    for (const std::string directory : {"unique", "shared"}) {
        for (const int depth : {0, 1, 2}) {
            for (const int ranks : {1, 3, 7}) {
                INFO(directory, " depth ", depth, ", ranks ", ranks);
                const Json tree{{"directory", directory}, {"depth", depth}, {"branch", 2}, {"items", 23}};
                Stage stage(ranks, {metadata("create", "file-create", tree), metadata("list", "list", tree),
                                    metadata("list-stat", "list-stat", with(tree, {{"rank_shift", 1}})),
                                    metadata("all", "list", with(tree, {{"share", "all"}})),
                                    metadata("find", "find", with(tree, {{"find_name", ".0"}})),
                                    metadata("none", "find", with(tree, {{"find_name", "f"}, {"find_bytes", 1}}))});
                run_well(stage, 0);
                const auto items = static_cast<std::uint64_t>(ranks) * 23;
                const auto trees = static_cast<std::uint64_t>(directory == "unique" ? ranks : 1);
                const std::uint64_t below = (std::uint64_t{2} << static_cast<unsigned>(depth)) - 2;
                CHECK(operations(run_well(stage, 1)) == items);
                CHECK(operations(run_well(stage, 2)) == items);
                CHECK(operations(run_well(stage, 3)) == items * static_cast<unsigned>(ranks));
                const auto found = run_well(stage, 4);
                CHECK(operations(found) == items + trees * below);
                CHECK(listed(found).matches == static_cast<std::uint64_t>(ranks) * 10);
                if (trees * (below + 1) >= static_cast<std::uint64_t>(ranks))
                    CHECK(listed(found).directories == trees * (below + 1));
                CHECK(listed(run_well(stage, 5)).matches == 0);
            }
        }
    }
}

TEST_CASE("find enters directories among the items, and matches files by size") {
    const Json files{{"items", 40}, {"file_bytes", 3901}};
    Stage stage(1,
                {metadata("create", "file-create", files), metadata("dirs", "dir-create", files),
                 metadata("find", "find", with(files, {{"find_bytes", 3901}})), metadata("cut", "file-truncate", files),
                 metadata("again", "find", with(files, {{"find_bytes", 3901}}))});
    run_well(stage, 0);
    run_well(stage, 1);
    std::ofstream(stage.path() / "items.0.tree/d0.07/within").close();
    const auto found = run_well(stage, 2);
    CHECK(operations(found) == 40 + 40 + 1);
    CHECK(listed(found).matches == 40);
    CHECK(listed(found).directories == 1 + 40);
    run_well(stage, 3);
    CHECK(listed(run_well(stage, 4)).matches == 0);
}

TEST_CASE("find covers the whole directory of the plan on request") {
    for (const int ranks : {1, 3}) {
        const Json easy{{"files", "easy"}, {"items", 20}};
        const Json hard{{"files", "hard"}, {"items", 10}, {"directory", "shared"}, {"file_bytes", 3901}};
        Stage stage(ranks, {transfer("data", "write"), metadata("easy", "file-create", easy),
                            metadata("hard", "file-create", hard),
                            metadata("find", "find", with(hard, {{"find_all", true}, {"find_bytes", 3901}}))});
        for (const std::size_t phase : {0U, 1U, 2U}) run_well(stage, phase);
        std::uint64_t entries = 0;
        for ([[maybe_unused]] const auto& entry : fs::recursive_directory_iterator(stage.path())) ++entries;
        const auto found = run_well(stage, 3);
        CHECK(operations(found) == entries);
        CHECK(listed(found).matches == static_cast<std::uint64_t>(ranks) * 10);
    }
}

TEST_CASE("find covers what other kinds of phases left, and trees without items") {
    for (const int ranks : {1, 3}) {
        const Json items{{"files", "items"}, {"items", 12}, {"depth", 1}, {"branch", 2}};
        const Json gone{{"files", "gone"}, {"items", 8}, {"depth", 1}, {"branch", 2}};
        Stage stage(ranks,
                    {transfer("data", "write", {{"own_directory", true}}), metadata("items", "file-create", items),
                     metadata("gone", "file-create", gone), metadata("remove", "file-remove", gone),
                     metadata("find", "find", with(items, {{"find_all", true}}))});
        for (const std::size_t phase : {0U, 1U, 2U, 3U}) run_well(stage, phase);
        fs::create_directories(stage.path() / "beside/b0/within");
        std::ofstream(stage.path() / "beside/b0/within/file").close();
        std::uint64_t entries = 0, directories = 1;
        for (const auto& entry : fs::recursive_directory_iterator(stage.path())) {
            ++entries;
            if (entry.is_directory()) ++directories;
        }
        const auto found = run_well(stage, 4);
        CHECK(operations(found) == entries);
        CHECK(listed(found).directories == directories);
    }
}

TEST_CASE("a directory that cannot be listed is named, and the sample counts what was listed") {
    const Json tree{{"items", 10}};
    Stage stage(1, {metadata("create", "file-create", tree), metadata("list", "list", tree)});
    run_well(stage, 0);
    fs::remove_all(stage.path() / "items.0.tree");
    const auto results = stage.run(1);
    REQUIRE(results[0].failure);
    CHECK(results[0].failure->path == "stage/items.0.tree");
    CHECK(results[0].failure->error_name == "ENOENT");

    const TestDirectory place;
    const Answers answers =
        run_plan(place.path(), 2, {metadata("create", "file-create", tree), metadata("find", "find", tree)});
    const Json sample = answers.sample("find");
    CHECK(sample.at("operations") == 20);
    CHECK(sample.at("listed") == Json{{"directories", 2}, {"matches", 20}});
    CHECK(calls_in(sample.at("histograms").at("find")) == 20);
}
