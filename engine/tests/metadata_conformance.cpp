// Conformance suite of metadata backends, by relative and absolute paths: the same plan must give the same items and
// errors.
#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "backend/registry.hpp"
#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

struct Way {
    std::string backend;
    std::string paths = "relative";

    [[nodiscard]] Json with(Json more = Json::object()) const {
        more["backend"] = backend;
        more["paths"] = paths;
        return more;
    }
};

template <class Body>
void for_every_way(Body body) {
    // All later ways are compared with the first.
    for (const Way& way : {Way{"posix"}, Way{"raw"}, Way{"posix", "absolute"}, Way{"posix", "mdtest"}}) {
        INFO(way.backend, " ", way.paths);
        body(way);
    }
}

// By path relative to the stage's directory: the content of a file, or "/" for a directory.
using Tree = std::map<std::string, std::string>;

Tree tree_of(const Stage& stage) {
    Tree tree;
    for (const auto& entry : fs::recursive_directory_iterator(stage.path())) {
        const std::string name = fs::relative(entry.path(), stage.path());
        if (name == ".strakes-marker") continue;
        tree[name] = entry.is_directory() ? "/" : text_of(entry.path());
    }
    return tree;
}

Sum totals(Stage& stage, std::size_t phase) { return sum_of(run_well(stage, phase)); }

}  // namespace

TEST_CASE("every backend creates, stats, renames and removes the same files, with the same data") {
    // Files larger than the buffer, smaller than the buffer, and empty.
    for (const std::uint64_t bytes : {2'500'001U, 3901U, 0U}) {
        for (const std::string directory : {"unique", "shared"}) {
            std::vector<Tree> expected;
            for_every_way([&](const Way& way) {
                INFO(directory, " ", bytes);
                Json tree = way.with({{"directory", directory},
                                      {"depth", 2},
                                      {"branch", 2},
                                      {"file_bytes", bytes},
                                      {"items", bytes > 1'000'000 ? 9 : 45}});
                const std::uint64_t all = tree.at("items").get<std::uint64_t>() * 2;
                Json next = tree;
                next["rank_shift"] = 1;
                Json everybody = tree;
                everybody["share"] = "all";
                std::vector<Json> phases{
                    metadata("create", "file-create", tree),        metadata("stat", "file-stat", next),
                    metadata("open", "file-open-close", everybody), metadata("rename", "file-rename", next),
                    metadata("stat2", "file-stat", everybody),      metadata("remove", "file-remove", tree)};
                if (bytes > 0) phases.insert(phases.begin() + 1, metadata("read", "file-read", next));
                Stage stage(plan_of(phases));
                const Sum created = totals(stage, 0);
                CHECK(created.operations == all);
                CHECK(created.bytes == all * bytes);
                std::vector<Tree> trees{tree_of(stage)};
                std::size_t phase = 1;
                if (bytes > 0) CHECK(totals(stage, phase++).bytes == all * bytes);
                CHECK(totals(stage, phase++).operations == all);
                CHECK(totals(stage, phase++).operations == 2 * all);
                CHECK(totals(stage, phase++).operations == all);
                trees.push_back(tree_of(stage));
                CHECK(totals(stage, phase++).operations == 2 * all);
                CHECK(totals(stage, phase).operations == all);
                trees.push_back(tree_of(stage));
                if (expected.empty()) expected = trees;
                CHECK((trees == expected));
                CHECK((trees[0] != trees[1]));
            });
        }
    }
}

TEST_CASE("every backend creates, stats, renames and removes the same directories") {
    std::vector<Tree> expected;
    for_every_way([&](const Way& way) {
        Stage stage(2, {metadata("create", "dir-create", way.with()), metadata("stat", "dir-stat", way.with()),
                        metadata("rename", "dir-rename", way.with()), metadata("stat2", "dir-stat", way.with()),
                        metadata("remove", "dir-remove", way.with())});
        std::vector<Tree> trees;
        for (std::size_t phase = 0; phase < 5; ++phase) {
            CHECK(totals(stage, phase).operations == 200);
            trees.push_back(tree_of(stage));
        }
        if (expected.empty()) expected = trees;
        CHECK((trees == expected));
    });
}

TEST_CASE("every backend leaves what a stonewall did not reach, and later phases touch only what exists") {
    for_every_way([](const Way& way) {
        const Json at_once = way.with({{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}});
        Stage stage(2, {metadata("create", "file-create", way.with()), metadata("rename", "file-rename", at_once),
                        metadata("stat", "file-stat", way.with()), metadata("remove", "file-remove", at_once),
                        metadata("stat2", "file-stat", way.with()), metadata("rename2", "file-rename", way.with()),
                        metadata("remove2", "file-remove", way.with())});
        // Operations in flight are still completed.
        const std::uint64_t some = 2;
        CHECK(totals(stage, 0).operations == 200);
        const Sum renamed = totals(stage, 1);
        CHECK(renamed.operations == some);
        CHECK(renamed.out_of_time);
        CHECK(totals(stage, 2).operations == 200);
        CHECK(totals(stage, 3).operations == some);
        for (const std::size_t phase : {4U, 5U, 6U}) CHECK(totals(stage, phase).operations == 200 - some);
        for (const auto& [name, content] : tree_of(stage)) CHECK(content == "/");
    });
}

TEST_CASE("every backend repeats the items for the requested seconds") {
    for_every_way([](const Way& way) {
        const Json few = way.with({{"items", 10}, {"file_bytes", 100}});
        Json brief = few;
        brief["stop"] = {{"rule", "seconds"}, {"seconds", 0.1}};
        Stage stage(1, {metadata("create", "file-create", few), metadata("stat", "file-stat", brief),
                        metadata("read", "file-read", brief)});
        totals(stage, 0);
        for (const std::size_t phase : {1U, 2U}) {
            const Sum repeated = totals(stage, phase);
            CHECK(repeated.out_of_time);
            CHECK(repeated.operations > 10);
        }
    });
}

TEST_CASE("every backend names the first missing item, in order") {
    for (const std::string operation : {"file-stat", "file-open-close", "file-rename", "file-remove"}) {
        for_every_way([&](const Way& way) {
            INFO(operation);
            const Json tree = way.with({{"depth", 2}, {"branch", 2}, {"items", 8}});
            Stage stage(1, {metadata("create", "file-create", tree), metadata("next", operation, tree)});
            totals(stage, 0);
            fs::remove(stage.path() / "items.0.tree/b1/b0/f0.5");
            fs::remove(stage.path() / "items.0.tree/b1/b1/f0.7");
            const auto results = stage.run(1);
            REQUIRE(results[0].failure);
            CHECK(results[0].failure->path == "stage/items.0.tree/b1/b0/f0.5");
            CHECK(results[0].failure->error_name == "ENOENT");
            CHECK(results[0].failure->operation == std::map<std::string, std::string>{{"file-stat", "stat"},
                                                                                      {"file-open-close", "open"},
                                                                                      {"file-rename", "rename"},
                                                                                      {"file-remove", "unlink"}}
                                                       .at(operation));
            // Other operations in flight may have completed.
            CHECK(results[0].operations >= 5);
            CHECK(results[0].operations <= 6);
        });
    }
}

TEST_CASE("every backend reports an existing file, and a file that is too short, as an error") {
    for_every_way([](const Way& way) {
        const Json small = way.with({{"items", 1}, {"file_bytes", 100}});
        Stage stage(1, {metadata("create", "file-create", small), metadata("read", "file-read", small)});
        totals(stage, 0);
        fs::resize_file(stage.path() / "items.0.tree/f0.0", 99);
        const auto read = stage.run(1);
        REQUIRE(read[0].failure);
        CHECK(read[0].failure->operation == "read");
        CHECK(read[0].failure->path == "stage/items.0.tree/f0.0");
        const auto created = stage.run(0);
        REQUIRE(created[0].failure);
        CHECK(created[0].failure->error_name == "EEXIST");
    });
}

TEST_CASE("every backend survives a full file system, names the file, and closes its files") {
    for_every_way([](const Way& way) {
        const TestDirectory place;
        const Mount mount(place.path(), "size=1m");
        if (!mount.is_there()) return;
        const auto open_files = [] {
            const fs::directory_iterator entries("/proc/self/fd");
            return std::distance(begin(entries), end(entries));
        };
        const auto before = open_files();
        const Json data = way.with({{"file_bytes", 65536}});
        const Answers answers = run_plan(place.path(), 2, {metadata("c", "file-create", data)});
        const Json error = answers.last("error");
        CHECK(error.at("errno") == "ENOSPC");
        CHECK(error.at("where").at("phase") == "c");
        CHECK(error.at("where").at("path").get<std::string>().find(".tree/f") != std::string::npos);
        CHECK(answers.last("done").at("cleaned") == true);
        CHECK(place.entries().empty());
        CHECK(open_files() == before);
    });
}

TEST_CASE("the sample states the backend and the number of operations in flight") {
    for_every_way([](const Way& way) {
        const TestDirectory place;
        const Answers answers = run_plan(place.path(), 2, {metadata("c", "file-create", way.with())});
        const Json sample = answers.sample("c");
        CHECK(sample.at("effective").at("backend") == way.backend);
        std::uint64_t latencies = 0;
        for (const Json& histogram : sample.at("histograms")) latencies += calls_in(histogram);
        CHECK(latencies == 200);
    });
}

TEST_CASE("no backend starts an operation after a halt") {
    for_every_way([](const Way& way) {
        Stage stage(2, {metadata("create", "file-create", way.with())});
        stage.halt = Halt::cancel;
        CHECK(totals(stage, 0).operations == 0);
    });
}
