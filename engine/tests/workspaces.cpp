// Plans with several directories, assigned to ranks round-robin.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support.hpp"
#include "workspace/workspace.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

Json beside(const std::vector<const TestDirectory*>& directories, const Json& more = Json::object()) {
    Json message = more;
    for (const TestDirectory* directory : directories)
        message["beside"].push_back({{"directory", directory->path().string()}});
    return message;
}

// Names of the entries of a directory, sorted.
std::vector<std::string> names_in(const fs::path& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
}

std::size_t files_in(const fs::path& directory) {
    std::size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(directory)) files += entry.is_regular_file() ? 1 : 0;
    return files;
}

}  // namespace

TEST_CASE("each rank writes its file, and creates its tree, in its directory") {
    const TestDirectory one, two, three;
    const Json plan = plan_of({transfer("write", "write"), transfer("read", "read", {{"verify", true}}),
                               metadata("create", "file-create", {{"directory", "unique"}}),
                               metadata("stat", "file-stat", {{"directory", "unique"}})},
                              5);
    const Answers answers = run_session(plan_message(one.path(), plan, beside({&two, &three}, {{"keep", true}})));
    CHECK(answers.exit_status == 0);
    CHECK(answers.sample("read")["bytes"] == 5 * 4 * 65536);
    CHECK(names_in(one.path() / "p") ==
          std::vector<std::string>{"data.0.data", "data.3.data", "items.0.tree", "items.3.tree"});
    CHECK(names_in(two.path() / "p") ==
          std::vector<std::string>{"data.1.data", "data.4.data", "items.1.tree", "items.4.tree"});
    CHECK(names_in(three.path() / "p") == std::vector<std::string>{"data.2.data", "items.2.tree"});
}

TEST_CASE("later phases find files that are in directories of their own") {
    const TestDirectory one, two;
    const Json own = {{"own_directory", true}};
    Json read = own, write = own;
    read["verify"] = true;
    for (const char* backend : {"posix", "stdio", "mmap"}) {
        CAPTURE(backend);
        read["backend"] = write["backend"] = backend;
        const Json plan = plan_of(
            {transfer("write", "write", write), transfer("again", "write", write), transfer("read", "read", read)}, 3);
        const Answers answers = run_session(plan_message(one.path(), plan, beside({&two}, {{"keep", true}})));
        CHECK(answers.exit_status == 0);
        CHECK(answers.sample("read")["effective"]["verified_bytes"] == 3 * 4 * 65536);
        CHECK(names_in(one.path() / "p") == std::vector<std::string>{"data.0.dir", "data.2.dir"});
        CHECK(names_in(two.path() / "p" / "data.1.dir") == std::vector<std::string>{"data"});
        fs::remove_all(one.path() / "p");
        fs::remove_all(two.path() / "p");
    }
    const Json shared = plan_of({transfer("write", "write", {{"own_directory", true}, {"layout", "shared-file"}})});
    CHECK(run_session(plan_message(one.path(), shared)).last("error")["where"]["key"] == "phases[0].own_directory");
    const Json differs = plan_of({transfer("write", "write", own), transfer("read", "read")});
    CHECK(run_session(plan_message(one.path(), differs)).last("error")["where"]["key"] == "phases[1].own_directory");
}

TEST_CASE("every directory has a copy of a shared tree, with the items of its ranks") {
    const TestDirectory one, two;
    const Json shared = {{"directory", "shared"}, {"items", 10}, {"depth", 1}, {"branch", 2}};
    const Json plan = plan_of({metadata("create", "file-create", shared), metadata("stat", "file-stat", shared)}, 3);
    const Answers answers = run_session(plan_message(one.path(), plan, beside({&two}, {{"keep", true}})));
    CHECK(answers.exit_status == 0);
    CHECK(answers.sample("stat")["operations"] == 30);
    CHECK(files_in(one.path() / "p") == 20);
    CHECK(files_in(two.path() / "p") == 10);
}

TEST_CASE("all directories are emptied, and other files next to them stay") {
    const TestDirectory one, two;
    const fs::path other = two.path() / "q";
    fs::create_directories(other);
    const Answers answers = run_session(plan_message(
        one.path(), plan_of({transfer("write", "write"), metadata("create", "file-create")}), beside({&two})));
    CHECK(answers.last("done")["cleaned"] == true);
    CHECK(one.entries().empty());
    CHECK(two.entries() == std::vector<std::string>{"q"});
}

TEST_CASE("ranks read only data of ranks in the same directory") {
    const TestDirectory one, two;
    const auto shifted = [&](int ranks, int shift) {
        const Json plan =
            plan_of({transfer("write", "write"), transfer("read", "read", {{"rank_shift", shift}})}, ranks);
        return run_session(plan_message(one.path(), plan, beside({&two}))).exit_status;
    };
    CHECK(shifted(4, 2) == 0);
    CHECK(shifted(4, 4) == 0);
    CHECK(shifted(4, 1) == 2);
    CHECK(shifted(3, 2) == 2);
}

TEST_CASE("a plan that needs one directory is refused for several, and nothing is created") {
    const TestDirectory one, two;
    const Json create = metadata("create", "file-create");
    const std::vector<Json> phases = {
        plan_of({transfer("write", "write", {{"layout", "shared-file"}})}),
        plan_of({create, metadata("stat", "file-stat", {{"share", "all"}})}),
        plan_of({metadata("create", "file-create", {{"directory", "shared"}}),
                 metadata("find", "find", {{"directory", "shared"}})}),
        plan_of({transfer("write", "write")}, 1),
    };
    for (const Json& plan : phases) {
        CAPTURE(plan.dump());
        const Answers answers = run_session(plan_message(one.path(), plan, beside({&two})));
        CHECK(answers.exit_status == 2);
        CHECK(answers.last("error")["where"]["key"] == "beside");
        CHECK(one.entries().empty());
        CHECK(two.entries().empty());
    }
}

TEST_CASE("if one directory has no marker, or has the plan's id already, nothing is created in any") {
    const TestDirectory one, two, three;
    const Json plan = plan_of({transfer("write", "write")}, 3);
    fs::create_directories(three.path() / "p" / "theirs");
    Answers answers = run_session(plan_message(one.path(), plan, beside({&two, &three})));
    CHECK(answers.exit_status == 2);
    CHECK(answers.last("error")["where"]["key"] == "id");
    CHECK(one.entries().empty());
    CHECK(two.entries().empty());
    CHECK(fs::exists(three.path() / "p" / "theirs"));
    fs::remove(two.path() / ".strakes-marker");
    answers = run_session(plan_message(one.path(), plan, beside({&two, &three})));
    CHECK(answers.last("error")["where"]["key"] == "beside");
    CHECK(one.entries().empty());
}

TEST_CASE("a fault of another directory before the first phase names that directory") {
    const TestDirectory one, two;
    const Json plan = plan_of({transfer("write", "write")}, 2);
    fs::create_directory(two.path() / "p");
    Json where = run_session(plan_message(one.path(), plan, beside({&two}))).last("error")["where"];
    CHECK(where["path"] == (two.path() / "p").string());
    CHECK(names_in(one.path()) == std::vector<std::string>{".strakes-marker"});
    fs::remove(two.path() / ".strakes-marker");
    where = run_session(plan_message(one.path(), plan, beside({&two}))).last("error")["where"];
    CHECK(where["path"] == (two.path() / ".strakes-marker").string());
    CHECK(where["key"] == "beside");
}
