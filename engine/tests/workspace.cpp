// The plan's directories, their assignment to ranks, and the removal of their contents.
#include "workspace/workspace.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "support.hpp"
#include "system/enter.hpp"
#include "workspace/tree_removal.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

Descriptor open_directory(const fs::path& path) { return Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY)); }

}  // namespace

TEST_CASE("a directory without the marker is refused and stays unchanged") {
    const TestDirectory directory;
    fs::remove(directory.path() / kMarker);
    Workspace workspace;
    const auto fault = workspace.make(directory.path(), "p");
    REQUIRE(fault);
    CHECK(fault->refused());
    CHECK(fault->key == "directory");
    CHECK(directory.entries().empty());
}

TEST_CASE("a marker that is a symbolic link or a directory is refused") {
    const TestDirectory directory;
    const fs::path marker = directory.path() / kMarker;
    fs::rename(marker, directory.path() / "elsewhere");
    fs::create_symlink("elsewhere", marker);
    CHECK(Workspace().make(directory.path(), "p")->refused());
    fs::remove(marker);
    fs::create_directory(marker);
    CHECK(Workspace().make(directory.path(), "p")->refused());
}

TEST_CASE("a directory that is a symbolic link, missing, or a file is refused") {
    const TestDirectory directory;
    const TestDirectory other;
    const fs::path link = other.path() / "link";
    fs::create_directory_symlink(directory.path(), link);
    for (const fs::path& path : {link, other.path() / "missing", other.path() / kMarker}) {
        const auto fault = Workspace().make(path, "p");
        REQUIRE(fault);
        CHECK(fault->refused());
    }
}

TEST_CASE("a prepared directory is accepted as it is, and created if it is missing") {
    const TestDirectory directory;
    fs::create_directories(directory.path() / "p" / "below");
    Workspace workspace;
    CHECK(!workspace.make(directory.path(), "p", true));
    CHECK(fs::exists(directory.path() / "p" / "below"));
    CHECK(!Workspace().make(directory.path(), "q", true));
    fs::create_directory_symlink(directory.path() / "p", directory.path() / "link");
    CHECK(Workspace().make(directory.path(), "link", true));
}

TEST_CASE("an id that exists is refused, and its files stay") {
    const TestDirectory directory;
    fs::create_directory(directory.path() / "p");
    std::ofstream(directory.path() / "p" / "precious") << "x";
    const auto fault = Workspace().make(directory.path(), "p");
    REQUIRE(fault);
    CHECK(fault->key == "id");
    CHECK(fs::exists(directory.path() / "p" / "precious"));
}

TEST_CASE("a workspace is created and removed") {
    const TestDirectory directory;
    Workspace workspace;
    CHECK_FALSE(workspace.make(directory.path(), "p"));
    CHECK(directory.entries() == std::vector<std::string>{"p"});
    CHECK_FALSE(workspace.remove());
    CHECK(directory.entries().empty());
}

TEST_CASE("a workspace that is not empty is not removed") {
    const TestDirectory directory;
    Workspace workspace;
    CHECK_FALSE(workspace.make(directory.path(), "p"));
    std::ofstream(directory.path() / "p" / "file") << "x";
    const auto failure = workspace.remove();
    REQUIRE(failure);
    CHECK(failure->path == "p");
    CHECK(failure->error_name == "ENOTEMPTY");
}

TEST_CASE("removal removes whole trees and leaves the targets of symbolic links") {
    const TestDirectory outside;
    std::ofstream(outside.path() / "precious") << "x";
    fs::create_directory(outside.path() / "treasure");
    const TestDirectory directory;
    fs::remove(directory.path() / kMarker);
    fs::create_directories(directory.path() / "a/b/c/d");
    for (int i = 0; i < 3000; ++i) std::ofstream(directory.path() / "a/b" / std::to_string(i)) << "x";
    fs::create_symlink(outside.path() / "precious", directory.path() / "a/to-file");
    fs::create_directory_symlink(outside.path(), directory.path() / "a/b/to-directory");
    fs::create_directory_symlink(outside.path() / "treasure", directory.path() / "to-treasure");
    const Descriptor opened = open_directory(directory.path());
    std::atomic<std::uint64_t> removed{0};
    TreeRemoval removal(opened.get(), "tree", removed);
    removal.work();
    CHECK(removal.left().empty());
    CHECK(removed == 3007);
    CHECK(directory.entries().empty());
    CHECK(outside.entries().size() == 2);
}

TEST_CASE("a directory or marker of another user is refused, and nothing is created there") {
    if (::geteuid() != 0) return;
    constexpr uid_t kStranger = 12345;
    for (const bool prepared : {false, true}) {
        for (const char* what : {".", kMarker}) {
            const TestDirectory directory;
            REQUIRE(::lchown((directory.path() / what).c_str(), kStranger, kStranger) == 0);
            const auto fault = Workspace().make(directory.path(), "p", prepared);
            REQUIRE(fault);
            CHECK(fault->key == "directory");
            CHECK(directory.entries().empty());
        }
    }
    const TestDirectory directory;
    fs::create_directory(directory.path() / "p");
    REQUIRE(::lchown((directory.path() / "p").c_str(), kStranger, kStranger) == 0);
    CHECK(Workspace().make(directory.path(), "p", true)->key == "directory");
    CHECK(Workspace().join(directory.path(), "p"));
}

TEST_CASE("a directory other than the one that strakes made is refused by all ranks, and nothing is created there") {
    const TestDirectory ours, theirs;
    fs::create_directory(theirs.path() / "p");
    struct stat made{};
    REQUIRE(::stat(ours.path().c_str(), &made) == 0);
    const Identity identity{.inode = made.st_ino, .device = made.st_dev};
    for (const Identity& one : {identity, Identity{.inode = made.st_ino}, Identity{.device = made.st_dev + 1}}) {
        CHECK(Workspace(false, false, one).make(theirs.path(), "q")->key == "directory");
        CHECK(Workspace(false, false, one).make(theirs.path(), "p", true)->key == "directory");
        CHECK(Workspace(false, false, one).join(theirs.path(), "p")->failure.error_name == "ESTALE");
    }
    const Json plan = plan_of({transfer("write", "write")}, 2);
    for (const char* wrong : {"directory", "beside"}) {
        Json message = {{"beside", {{{"directory", theirs.path().string()}}}}};
        (wrong == std::string("beside") ? message["beside"][0] : message)["inode"] = made.st_ino + 1;
        const Answers answers = run_session(plan_message(ours.path(), plan, message));
        CHECK(answers.last("error")["where"]["key"] == wrong);
    }
    CHECK(theirs.entries() == std::vector<std::string>{"p"});
    CHECK(ours.entries().empty());
    CHECK_FALSE(Workspace(false, false, identity).make(ours.path(), "p"));
    CHECK_FALSE(Workspace(false, false, identity).join(ours.path(), "p"));
}

TEST_CASE("several ranks remove one tree together") {
    const TestDirectory directory;
    for (int tree = 0; tree < 8; ++tree)
        for (int leaf = 0; leaf < 20; ++leaf)
            fs::create_directories(directory.path() / std::to_string(tree) / std::to_string(leaf));
    const Descriptor opened = open_directory(directory.path());
    std::atomic<std::uint64_t> removed{0};
    TreeRemoval removal(opened.get(), "tree", removed, {.threads = 2});
    {
        const std::jthread one([&] { removal.work(); });
        const std::jthread two([&] { removal.work(); });
    }
    CHECK(removal.left().empty());
    TreeRemoval(opened.get(), "tree", removed).work();
    CHECK(directory.entries().empty());
}

TEST_CASE("for any shape of tree, processes remove about equal shares, and the threads of one remove everything") {
    constexpr std::uint32_t kProcesses = 4;
    constexpr int kFiles = 1200;
    struct Shape {
        int directories;  // side by side
        int depth;        // levels above the files
    };
    for (const Shape shape : {Shape{1, 1}, Shape{1, 3}, Shape{3, 2}, Shape{200, 1}}) {
        for (const std::uint32_t processes : {kProcesses, 1U}) {
            const TestDirectory directory;
            fs::remove(directory.path() / kMarker);
            for (int i = 0; i < kFiles; ++i) {
                fs::path below = directory.path();
                for (int level = 0; level < shape.depth; ++level) below /= std::to_string(i % shape.directories);
                fs::create_directories(below);
                std::ofstream(below / ("file" + std::to_string(i)));
            }
            const Descriptor opened = open_directory(directory.path());
            std::vector<std::atomic<std::uint64_t>> removed(kProcesses);
            std::vector<std::unique_ptr<TreeRemoval>> removals;
            removals.reserve(processes);
            {
                // Like ranks that are threads: each thread has its own descriptor table.
                std::barrier begun(kProcesses + 1), shared_out(kProcesses + 1);
                std::vector<std::jthread> threads;
                threads.reserve(kProcesses);
                for (std::uint32_t i = 0; i < kProcesses; ++i) {
                    threads.emplace_back([&, i] {
#if !defined(__SANITIZE_THREAD__)  // ThreadSanitizer takes equal numbers in different tables for one descriptor
                        CHECK(::unshare(CLONE_FILES) == 0);
#endif
                        begun.arrive_and_wait();
                        shared_out.arrive_and_wait();
                        removals[i % processes]->work();
                    });
                }
                begun.arrive_and_wait();
                for (std::uint32_t number = 0; number < processes; ++number) {
                    removals.push_back(std::make_unique<TreeRemoval>(
                        opened.get(), "tree", removed[number],
                        TreeRemoval::Share{.number = number, .of = processes, .threads = kProcesses / processes}));
                }
                shared_out.arrive_and_wait();
            }
            for (std::uint32_t number = 0; number < processes; ++number) {
                CHECK(removed[number] > kFiles / processes * 3 / 4);
                CHECK(removals[number]->left().empty());
            }
            TreeRemoval last(opened.get(), "tree", removed[0]);
            last.work();
            CHECK(last.left().empty());
            CHECK(directory.entries().empty());
        }
    }
}

TEST_CASE("removal ends while another program keeps creating files") {
    const TestDirectory directory;
    const Descriptor opened = open_directory(directory.path());
    std::atomic<std::uint64_t> removed{0};
    std::jthread filler([&directory](const std::stop_token& stop) {
        for (int i = 0; !stop.stop_requested(); ++i) std::ofstream(directory.path() / ("new" + std::to_string(i)));
    });
    TreeRemoval(opened.get(), "tree", removed).work();
    filler.request_stop();
    CHECK(removed > 0);
}

TEST_CASE("a mount point inside is left and named") {
    const TestDirectory directory;
    fs::remove(directory.path() / kMarker);
    fs::create_directories(directory.path() / "a/mounted");
    const Mount mount(directory.path() / "a/mounted", "size=1m");
    if (!mount.is_there()) return;
    const Descriptor opened = open_directory(directory.path());
    std::atomic<std::uint64_t> removed{0};
    TreeRemoval removal(opened.get(), "tree", removed);
    removal.work();
    CHECK(removal.left() == std::vector<std::string>{"tree/a/mounted"});
    CHECK(removal.failure()->error_name == "EBUSY");
    CHECK(fs::exists(directory.path() / "a/mounted" / kMarker));
}

TEST_CASE("a bind mount inside is left, whichever call opens it") {
    const TestDirectory foreign;
    for (int i = 0; i < 20; ++i) std::ofstream(foreign.path() / std::to_string(i)) << "precious";
    const TestDirectory directory;
    fs::remove(directory.path() / kMarker);
    fs::create_directories(directory.path() / "a/bound");
    const Mount mount(directory.path() / "a/bound", Mount::Shown{foreign.path()});
    if (!mount.is_there()) return;
    const Descriptor opened = open_directory(directory.path());
    const Descriptor above = open_directory(directory.path() / "a");
    CHECK(enter_directory(above.get(), "bound") == -EXDEV);
    CHECK(detail::enter_by_mount_number(above.get(), "bound") == -EXDEV);
    std::atomic<std::uint64_t> removed{0};
    TreeRemoval removal(opened.get(), "tree", removed);
    removal.work();
    CHECK(removal.left() == std::vector<std::string>{"tree/a/bound"});
    CHECK(foreign.entries().size() == 20);
}

TEST_CASE("a directory is entered only by its own name, with openat2 and without") {
    const TestDirectory directory;
    fs::create_directories(directory.path() / "a/b");
    fs::create_directory_symlink("a", directory.path() / "link");
    const Descriptor opened = open_directory(directory.path());
    const Descriptor below = open_directory(directory.path() / "a");
    for (const auto enter : {enter_directory, detail::enter_by_mount_number}) {
        const Descriptor entered(enter(opened.get(), "a"));
        CHECK(entered);
        CHECK(enter(opened.get(), "link") < 0);
        CHECK(enter(opened.get(), kMarker) == -ENOTDIR);
        CHECK(enter(opened.get(), "missing") == -ENOENT);
        CHECK(enter(below.get(), "..") == -EXDEV);
        CHECK(enter(opened.get(), "/") == -EXDEV);
    }
}

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
    const Answers answers =
        run_plan(one.path(), 2, {transfer("write", "write"), metadata("create", "file-create")}, beside({&two}));
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

TEST_CASE("a workspace whose marker names another run is refused") {
    const TestDirectory above;
    const fs::path directory = above.path() / "strakes-20260101-000000-survey-0000";
    fs::create_directory(directory);
    for (const bool ours : {false, true}) {
        const char* run = ours ? "20260101-000000-survey-0000" : "20260101-000000-survey-0001";
        std::ofstream(directory / ".strakes-marker") << "{\"run\": \"" << run << "\", \"user\": \"root\"}";
        const Answers answers = run_session(plan_message(directory, plan_of({transfer("write", "write")}, 1)));
        CHECK(answers.exit_status == (ours ? 0 : 2));
        if (!ours) CHECK(answers.last("error")["where"]["key"] == "directory");
    }
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
