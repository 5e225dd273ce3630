// The stop rule wear-out: when its seconds are over, all ranks continue until they have done as much as the furthest
// one.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

namespace {

const Json kAtOnce = {{"rule", "wear-out"}, {"seconds", 0.05}};

// The distinct operation counts of the ranks.
std::set<std::uint64_t> operations(const Json& sample) {
    std::set<std::uint64_t> counts;
    for (const Json& row : sample.at("ranks")) counts.insert(row.at(4).get<std::uint64_t>());
    return counts;
}

}  // namespace

TEST_CASE("all ranks do as much as the furthest has done when the seconds are over, and later phases find all of it") {
    const TestDirectory place;
    const Json many{{"items", 10'000'000}, {"stop", kAtOnce}};
    const Json rest{{"items", 10'000'000}};
    const Json file{{"layout", "shared-file"},
                    {"access", "strided"},
                    {"transfer_bytes", 4096},
                    {"block_bytes", 4096},
                    {"segments", 100'000'000}};
    Json write = file;
    write["stop"] = kAtOnce;
    Json read = file;
    read["verify"] = true;
    const Answers answers = run_session(plan_message(
        place.path(), plan_of({metadata("create", "file-create", many), metadata("stat", "file-stat", rest),
                               metadata("remove", "file-remove", rest), transfer("write", "write", write),
                               transfer("read", "read", read)},
                              3)));
    CHECK(answers.last("done").at("status") == "ok");
    for (const char* first : {"create", "write"}) {
        INFO(first);
        const Json sample = answers.sample(first);
        CHECK(sample.at("stopped_by") == "seconds");
        CHECK(operations(sample).size() == 1);
        CHECK(sample.at("elapsed_s").get<double>() >= 0.05);
        for (const char* later : {"stat", "remove"})
            if (std::string(first) == "create") CHECK(operations(answers.sample(later)) == operations(sample));
        if (std::string(first) == "write") CHECK(operations(answers.sample("read")) == operations(sample));
    }
}

TEST_CASE("a phase that ends before its seconds does its full amount on every rank") {
    const TestDirectory place;
    const Json few{{"items", 50}, {"stop", {{"rule", "wear-out"}, {"seconds", 600}}}};
    const Answers answers =
        run_session(plan_message(place.path(), plan_of({metadata("create", "file-create", few)}, 4)));
    const Json sample = answers.sample("create");
    CHECK(sample.at("stopped_by") == "amount");
    CHECK(operations(sample) == std::set<std::uint64_t>{50});
}

TEST_CASE("a rank that fails does not keep the others waiting") {
    const TestDirectory place;
    const Mount mount(place.path(), "size=1m");
    if (!mount.is_there()) return;
    const Json data{{"items", 10'000'000}, {"file_bytes", 65536}, {"stop", {{"rule", "wear-out"}, {"seconds", 600}}}};
    const Answers answers =
        run_session(plan_message(place.path(), plan_of({metadata("create", "file-create", data)}, 3)));
    CHECK(answers.last("error").at("errno") == "ENOSPC");
    CHECK(answers.last("done").at("status") == "failed");
    CHECK(answers.last("done").at("cleaned") == true);
}
