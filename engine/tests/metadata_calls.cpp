// Metadata operations other than create, stat and remove: modes, links, lengths, extended attributes, order, and
// listings.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "backend/registry.hpp"
#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

std::vector<RankResult> run_well(Stage& stage, std::size_t phase) {
    auto results = stage.run(phase);
    for (const RankResult& result : results) {
        CHECK_FALSE(result.failure);
        if (result.failure) MESSAGE(result.failure->what, " ", result.failure->path, " ", result.failure->why);
    }
    return results;
}

std::uint64_t operations(const std::vector<RankResult>& results) {
    return std::accumulate(results.begin(), results.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const RankResult& result) { return sum + result.operations; });
}

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

Json with(Json tree, const Json& more) {
    tree.update(more);
    return tree;
}

}  // namespace

TEST_CASE("chmod changes the mode of every file, and the owner may still read it") {
    for_every_path([](const Json& tree) {
        Stage stage(plan_of({metadata("create", "file-create", tree), metadata("first", "file-chmod", tree),
                             metadata("second", "file-chmod", with(tree, {{"rank_shift", 1}})),
                             metadata("read", "file-read", tree)}));
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
        Stage stage(plan_of({metadata("create", "file-create", tree), metadata("rename", "file-rename", half),
                             metadata("link", "file-link", with(tree, {{"rank_shift", 1}})),
                             metadata("remove", "file-remove", tree)}));
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
            Stage stage(plan_of({metadata("create", "file-create", tree),
                                 metadata("cut", "file-truncate", with(tree, {{"truncate_bytes", bytes}}))}));
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
        Stage stage(plan_of({metadata("create", "file-create", tree), metadata("some", "file-setxattr", at_once),
                             metadata("read-some", "file-getxattr", with(value, {{"rank_shift", 1}})),
                             metadata("all", "file-setxattr", value),
                             metadata("read-all", "file-getxattr", with(value, {{"share", "all"}}))}));
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
        CHECK(results[0].failure->operation == (tree.at("paths") == "relative" ? "fgetxattr" : "getxattr"));
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
            Stage stage(plan_of({metadata("create", "file-create", tree),
                                 metadata("stat", "file-stat", with(tree, {{"order", "random"}}))},
                                1));
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
    Stage stage(plan_of({metadata("create", "file-create", tree), metadata("stat", "file-stat", brief)}));
    run_well(stage, 0);
    CHECK(operations(run_well(stage, 1)) > 2 * 128);
}

TEST_CASE("a listing returns every entry once, or once for each rank with share all") {
    for (const std::string directory : {"unique", "shared"}) {
        for (const int depth : {0, 1, 2}) {
            for (const int ranks : {1, 3, 7}) {
                INFO(directory, " depth ", depth, ", ranks ", ranks);
                const Json tree{{"directory", directory}, {"depth", depth}, {"branch", 2}, {"items", 23}};
                Stage stage(plan_of({metadata("create", "file-create", tree), metadata("list", "list", tree),
                                     metadata("list-stat", "list-stat", with(tree, {{"rank_shift", 1}})),
                                     metadata("all", "list", with(tree, {{"share", "all"}})),
                                     metadata("find", "find", with(tree, {{"find_name", ".0"}})),
                                     metadata("none", "find", with(tree, {{"find_name", "f"}, {"find_bytes", 1}}))},
                                    ranks));
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
    Stage stage(
        plan_of({metadata("create", "file-create", files), metadata("dirs", "dir-create", files),
                 metadata("find", "find", with(files, {{"find_bytes", 3901}})), metadata("cut", "file-truncate", files),
                 metadata("again", "find", with(files, {{"find_bytes", 3901}}))},
                1));
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
        Stage stage(plan_of(
            {transfer("data", "write"), metadata("easy", "file-create", easy), metadata("hard", "file-create", hard),
             metadata("find", "find", with(hard, {{"find_all", true}, {"find_bytes", 3901}}))},
            ranks));
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
        Stage stage(
            plan_of({transfer("data", "write", {{"own_directory", true}}), metadata("items", "file-create", items),
                     metadata("gone", "file-create", gone), metadata("remove", "file-remove", gone),
                     metadata("find", "find", with(items, {{"find_all", true}}))},
                    ranks));
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
    Stage stage(plan_of({metadata("create", "file-create", tree), metadata("list", "list", tree)}, 1));
    run_well(stage, 0);
    fs::remove_all(stage.path() / "items.0.tree");
    const auto results = stage.run(1);
    REQUIRE(results[0].failure);
    CHECK(results[0].failure->path == "stage/items.0.tree");
    CHECK(results[0].failure->error_name == "ENOENT");

    const TestDirectory place;
    const Answers answers = run_session(
        plan_message(place.path(), plan_of({metadata("create", "file-create", tree), metadata("find", "find", tree)})));
    const Json sample = answers.sample("find");
    CHECK(sample.at("operations") == 20);
    CHECK(sample.at("listed") == Json{{"directories", 2}, {"matches", 20}});
    std::uint64_t latencies = 0;
    for (const Json& bucket : sample.at("histograms").at("find").at("buckets"))
        latencies += bucket.at(1).get<std::uint64_t>();
    CHECK(latencies == 20);
}
