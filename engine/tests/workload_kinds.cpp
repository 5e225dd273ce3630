// Streams, samples from random places of a shared file, and items shared by all ranks.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "backend/registry.hpp"
#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

Json stream(std::string_view name, std::string_view operation, const Json& more = Json::object()) {
    Json phase = {{"kind", "stream"}, {"name", name}, {"operation", operation}, {"block_bytes", 1000}, {"count", 50}};
    phase.update(more);
    return phase;
}

template <class Value>
Value sum(const std::vector<RankResult>& results, Value RankResult::* member) {
    Value total{};
    for (const RankResult& result : results) {
        CHECK_FALSE(result.failure);
        if (result.failure) MESSAGE(result.failure->what, ": ", result.failure->why);
        total += result.*member;
    }
    return total;
}

}  // namespace

TEST_CASE("a stream has its own file for every rank, and its sample says so") {
    const TestDirectory directory;
    const Answers answers = run_session(plan_message(
        directory.path(), plan_of({stream("write", "write"), stream("read", "read", {{"verify", true}})}, 3),
        {{"keep", true}}));
    CHECK(answers.last("done")["status"] == "ok");
    const Json write = answers.sample("write");
    CHECK(write["kind"] == "stream");
    CHECK(write["operation"] == "write");
    CHECK(write["operations"] == 150);
    CHECK(write["bytes"] == 150'000);
    CHECK(write["effective"]["transfer_bytes"] == 1000);
    CHECK(answers.sample("read")["effective"]["verified_bytes"] == 150'000);
    for (const char* name : {"stream.0.data", "stream.1.data", "stream.2.data"})
        CHECK(fs::file_size(directory.path() / "p" / name) == 50'000);
}

TEST_CASE("samples from a shared file have the requested amount, and verify") {
    const Json shared = {{"layout", "shared-file"}};
    Json samples = {{"layout", "shared-file"}, {"access", "random-whole"}, {"verify", true}, {"segments", 6}};
    Stage stage(plan_of({transfer("write", "write", shared), transfer("read", "read", samples)}, 2));
    CHECK(sum(stage.run(0), &RankResult::bytes) == 2 * 4 * 65536);
    const auto results = stage.run(1);
    CHECK(sum(results, &RankResult::bytes) == 2 * 6 * 65536);
    CHECK(sum(results, &RankResult::verified_bytes) == 2 * 6 * 65536);
}

TEST_CASE("samples larger than the blocks of the write stay within the file") {
    const Json shared = {{"layout", "shared-file"}, {"block_bytes", 20480}};
    const Json samples = {{"layout", "shared-file"}, {"access", "random-whole"}, {"verify", true},
                          {"transfer_bytes", 12288}, {"block_bytes", 12288},     {"segments", 13}};
    Stage stage(plan_of({transfer("write", "write", shared), transfer("read", "read", samples)}, 2));
    sum(stage.run(0), &RankResult::bytes);
    CHECK(sum(stage.run(1), &RankResult::bytes) == 2 * 13 * 12288);
}

TEST_CASE("samples need a file that was completely written") {
    const Json early = {{"layout", "shared-file"}, {"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}};
    const Json samples = {{"layout", "shared-file"}, {"access", "random-whole"}};
    Stage stage(plan_of({transfer("write", "write", early), transfer("read", "read", samples)}, 2));
    stage.run(0);
    const auto failure = stage.run(1).front().failure;
    REQUIRE(failure);
    CHECK(failure->what.find("not written to the end") != std::string::npos);
}

TEST_CASE("if all ranks share the items, every rank does all of them") {
    for (const char* directory : {"unique", "shared"}) {
        const Json tree = {{"directory", directory}, {"depth", 1}, {"branch", 4}, {"items", 10}, {"file_bytes", 100}};
        Json all = tree;
        all.update({{"share", "all"}});
        Stage stage(plan_of({metadata("create", "file-create", tree), metadata("stat", "file-stat", all),
                             metadata("load", "file-read", all), metadata("remove", "file-remove", tree)},
                            3));
        CHECK(sum(stage.run(0), &RankResult::operations) == 30);
        CHECK(sum(stage.run(1), &RankResult::operations) == 90);
        const auto loaded = stage.run(2);
        CHECK(std::ranges::all_of(loaded, [](const RankResult& one) { return one.operations == 30; }));
        CHECK(sum(loaded, &RankResult::bytes) == 9000);
        CHECK(sum(stage.run(3), &RankResult::operations) == 30);
    }
}

TEST_CASE("no rank opens the trees of all ranks to work on their items") {
    constexpr int kSpare = 100;  // fewer than 8 ranks x 8 trees x 4 directories
    const int free_one = ::dup(0);
    ::close(free_one);
    rlimit before{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
    const auto check = [&](const std::string& backend, const char* order) {
        INFO(backend, " ", order);
        const Json tree = {{"depth", 1}, {"branch", 4}, {"items", 10}, {"file_bytes", 100}};
        Json all = tree;
        all.update({{"share", "all"}, {"order", order}, {"backend", backend}});
        Stage stage(plan_of({metadata("create", "file-create", tree), metadata("stat", "file-stat", all),
                             metadata("load", "file-read", all)},
                            8));
        rlimit few = before;
        few.rlim_cur = static_cast<rlim_t>(free_one) + kSpare;
        CHECK(sum(stage.run(0), &RankResult::operations) == 80);
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
        const auto looked = sum(stage.run(1), &RankResult::operations), loaded = sum(stage.run(2), &RankResult::bytes);
        ::setrlimit(RLIMIT_NOFILE, &before);
        CHECK(looked == 640);
        CHECK(loaded == 64000);
    };
    for (const char* order : {"in-order", "random"}) {
        check("posix", order);
        check("raw", order);
    }
}

TEST_CASE("shared items that another rank did not create in time are not expected") {
    const Json early = {{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}};
    Stage stage(
        plan_of({metadata("create", "file-create", early), metadata("stat", "file-stat", {{"share", "all"}})}, 3));
    CHECK(sum(stage.run(0), &RankResult::operations) == 3);
    CHECK(sum(stage.run(1), &RankResult::operations) == 9);
}
