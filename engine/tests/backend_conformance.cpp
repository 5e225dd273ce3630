// Conformance suite of transfer backends: the same plan must give the same bytes and the same errors.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
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
    int queue_depth = 1;

    [[nodiscard]] Json with(Json more) const {
        more["backend"] = backend;
        more["queue_depth"] = queue_depth;
        return more;
    }
};

// All later ways are compared with the first.
std::vector<Way> ways() {
    std::vector<Way> all{{"posix"}, {"raw"}, {"stdio"}, {"mmap"}};
    if (absence_of(Backend::uring).why.empty()) {
        all.push_back({"uring"});
        all.push_back({"uring", 7});
    } else {
        MESSAGE("not run: uring, ", absence_of(Backend::uring).why);
    }
    return all;
}

template <class Body>
void for_every_way(Body body) {
    for (const Way& way : ways()) {
        INFO(way.backend, " ", way.queue_depth);
        body(way);
    }
}

using Contents = std::map<std::string, std::string>;

Contents contents_of(const fs::path& directory) {
    Contents contents;
    for (const auto& entry : fs::directory_iterator(directory))
        if (entry.is_regular_file()) contents[entry.path().filename().string()] = text_of(entry.path());
    return contents;
}

struct Shape {
    std::string layout, access;
};
const std::vector<Shape> kShapes{{"file-per-process", "segmented"},
                                 {"file-per-process", "random"},
                                 {"shared-file", "segmented"},
                                 {"shared-file", "strided"},
                                 {"shared-file", "random"}};

Json of_shape(const Shape& shape, Json more) {
    more["layout"] = shape.layout;
    more["access"] = shape.access;
    return more;
}

constexpr std::uint64_t kAllBytes = std::uint64_t{2} * 4 * 65536;

}  // namespace

TEST_CASE("every backend writes the same bytes, and reads, rewrites and mixes them, in every layout and access") {
    for (const Shape& shape : kShapes) {
        for (const Json& content : {Json::object(), Json{{"compressible_percent", 40}, {"duplicate_percent", 25}}}) {
            Contents expected, changed;
            for_every_way([&](const Way& way) {
                INFO(shape.layout, " ", shape.access);
                const auto more = [&](Json own) {
                    own.update(content);
                    return way.with(of_shape(shape, std::move(own)));
                };
                Stage stage(2, {transfer("w", "write", more({{"sync", "fsync"}})),
                                transfer("r", "read", more({{"verify", true}})), transfer("again", "rewrite", more({})),
                                transfer("m", "mixed", more({{"verify", true}, {"read_percent", 40}})),
                                transfer("shifted", "read", more({{"verify", true}, {"rank_shift", 1}}))});
                const Sum written = sum_of(stage.run(0));
                CHECK_FALSE(written.failed);
                CHECK(written.bytes == kAllBytes);
                CHECK(written.operations == kAllBytes / 4096);
                const Contents contents = contents_of(stage.path());
                if (expected.empty()) expected = contents;
                CHECK(contents == expected);
                CHECK(sum_of(stage.run(1)).verified == kAllBytes);
                CHECK(sum_of(stage.run(2)).bytes == kAllBytes);
                const Sum mixed = sum_of(stage.run(3));
                CHECK_FALSE(mixed.failed);
                CHECK(mixed.operations == kAllBytes / 4096);
                CHECK(mixed.verified > 0);
                CHECK(mixed.verified < kAllBytes);
                const Contents rewritten = contents_of(stage.path());
                if (changed.empty()) changed = rewritten;
                CHECK(rewritten == changed);
                CHECK(rewritten != expected);
                CHECK(sum_of(stage.run(4)).verified == kAllBytes);
            });
        }
    }
}

TEST_CASE("every backend reads a whole shared file on every rank") {
    for_every_way([](const Way& way) {
        Stage stage(
            2, {transfer("w", "write", way.with({{"layout", "shared-file"}})),
                transfer("r", "read", way.with({{"layout", "shared-file"}, {"access", "whole"}, {"verify", true}}))});
        CHECK_FALSE(sum_of(stage.run(0)).failed);
        CHECK(sum_of(stage.run(1)).verified == 2 * kAllBytes);
    });
}

TEST_CASE("every backend reads random places of a shared file that all ranks wrote") {
    for_every_way([](const Way& way) {
        for (const char* const access : {"random-whole", "draws"}) {
            CAPTURE(access);
            Stage stage(3, {transfer("write", "write", {{"layout", "shared-file"}}),
                            transfer("read", "read",
                                     way.with({{"layout", "shared-file"}, {"access", access}, {"verify", true}}))});
            CHECK_FALSE(sum_of(stage.run(0)).failed);
            const Sum read = sum_of(stage.run(1));
            CHECK_FALSE(read.failed);
            CHECK(read.verified == read.bytes);
            CHECK(read.bytes > 0);
        }
    });
}

TEST_CASE("every backend moves transfers of odd sizes to odd places") {
    const Json sizes = {{"transfer_bytes", 1001}, {"block_bytes", 7007}, {"segments", 3}, {"layout", "shared-file"}};
    for (const std::string access : {"strided", "random"}) {
        Contents expected;
        for_every_way([&](const Way& way) {
            Json more = way.with(sizes);
            more["access"] = access;
            Json verified = more;
            verified["verify"] = true;
            Stage stage(2, {transfer("w", "write", more), transfer("r", "read", verified)});
            CHECK_FALSE(sum_of(stage.run(0)).failed);
            const Contents contents = contents_of(stage.path());
            if (expected.empty()) expected = contents;
            CHECK(contents == expected);
            CHECK(sum_of(stage.run(1)).verified == 2 * 3 * 7007);
        });
    }
}

TEST_CASE("every backend finds a corrupted byte") {
    for_every_way([](const Way& way) {
        Stage stage(2, {transfer("w", "write", way.with({})), transfer("r", "read", way.with({{"verify", true}}))});
        CHECK_FALSE(sum_of(stage.run(0)).failed);
        constexpr off_t kOffset = 70001;
        const Descriptor file(::open((stage.path() / "data.1.data").c_str(), O_RDWR));
        unsigned char byte = 0;
        REQUIRE(::pread(file.get(), &byte, 1, kOffset) == 1);
        byte ^= 0x40U;
        REQUIRE(::pwrite(file.get(), &byte, 1, kOffset) == 1);
        const auto results = stage.run(1);
        CHECK_FALSE(results[0].failure);
        REQUIRE(results[1].failure);
        CHECK(results[1].failure->what == "the data read are not the data written");
        CHECK(results[1].failure->path == "stage/data.1.data");
        CHECK(results[1].failure->offset_bytes == kOffset);
        CHECK(results[1].failure->why.find("expected byte 0x") != std::string::npos);
    });
}

TEST_CASE("every backend reports where a file ends too early") {
    for_every_way([](const Way& way) {
        for (const std::uint64_t size : {0U, 10000U, 12288U}) {
            INFO(size);
            Stage stage(1, {transfer("w", "write", way.with({})), transfer("r", "read", way.with({}))});
            CHECK_FALSE(sum_of(stage.run(0)).failed);
            fs::resize_file(stage.path() / "data.0.data", size);
            const auto results = stage.run(1);
            REQUIRE(results[0].failure);
            CHECK(results[0].failure->operation == "read");
            CHECK(results[0].failure->why == "the file ends before the data that were written");
            CHECK(results[0].failure->offset_bytes == size);
            CHECK(results[0].operations == size / 4096);
        }
    });
}

TEST_CASE("every backend survives a full file system and reports it") {
    for_every_way([](const Way& way) {
        const TestDirectory place;
        const Mount mount(place.path(), "size=1m");
        if (!mount.is_there()) return;
        for (const std::string layout : {"file-per-process", "shared-file"}) {
            INFO(layout);
            const Json more = way.with({{"layout", layout}, {"segments", 64}, {"sync", "fsync"}});
            const Answers answers = run_plan(place.path(), 2, {transfer("w", "write", more)});
            const Json error = answers.last("error");
            CHECK(error.at("errno") == "ENOSPC");
            CHECK(error.at("where").at("phase") == "w");
            CHECK(error.at("where").contains("path"));
            CHECK(answers.last("done").at("status") == "failed");
            CHECK(answers.last("done").at("cleaned") == true);
            CHECK(answers.sample("w").at("stopped_by") == "error");
            CHECK(place.entries().empty());
        }
    });
}

TEST_CASE("after a stonewall every backend reads what was written, in the order of writing") {
    for (const Shape& shape : kShapes) {
        for_every_way([&](const Way& way) {
            INFO(shape.layout, " ", shape.access);
            const Json brief = {{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}};
            Stage stage(2, {transfer("w", "write", way.with(of_shape(shape, brief))),
                            transfer("r", "read", way.with(of_shape(shape, {{"verify", true}}))),
                            transfer("again", "rewrite", way.with(of_shape(shape, {})))});
            const Sum written = sum_of(stage.run(0));
            CHECK_FALSE(written.failed);
            CHECK(written.out_of_time);
            // Operations in flight are still completed.
            CHECK(written.operations == 2U * static_cast<unsigned>(way.queue_depth));
            const Sum read = sum_of(stage.run(1));
            CHECK_FALSE(read.failed);
            CHECK(read.operations == written.operations);
            CHECK(read.verified == written.bytes);
            CHECK(sum_of(stage.run(2)).operations == written.operations);
        });
    }
}

TEST_CASE("every backend repeats its transfers for the requested seconds") {
    for_every_way([](const Way& way) {
        const Json brief = way.with({{"stop", {{"rule", "seconds"}, {"seconds", 0.03}}}, {"segments", 1}});
        Json verified = brief;
        verified.update({{"verify", true}, {"access", "random"}});
        Json mixed = brief;
        mixed.update({{"verify", true}, {"read_percent", 50}});
        Stage stage(1, {transfer("w", "write", brief), transfer("r", "read", verified), transfer("m", "mixed", mixed)});
        for (const std::size_t phase : {0U, 1U, 2U}) {
            auto results = stage.run(phase);
            // On a busy machine a rank may get no processor during that time, so the phase is repeated.
            for (int again = 0; again < 20 && results[0].operations <= 16; ++again) results = stage.run(phase);
            CHECK_FALSE(results[0].failure);
            CHECK(results[0].out_of_time);
            CHECK(results[0].operations > 16);
            const Clock& clock = Clock::system();
            CHECK(clock.to_seconds(elapsed(results[0].start, results[0].end)) >= 0.03);
        }
        CHECK(fs::file_size(stage.path() / "data.0.data") == 65536);
    });
}

TEST_CASE("no backend starts an operation after a halt") {
    for_every_way([](const Way& way) {
        Stage stage(2, {transfer("w", "write", way.with({}))});
        stage.halt = Halt::cancel;
        const Sum written = sum_of(stage.run(0));
        CHECK(written.operations == 0);
        CHECK_FALSE(written.failed);
    });
}

TEST_CASE(
    "every backend writes into preallocated files, and measures opening and closing inside or outside the phase") {
    for_every_way([](const Way& way) {
        for (const std::string sync : {"none", "close", "fsync"}) {
            for (const bool time_open : {false, true}) {
                const Json more = {{"sync", sync}, {"time_open", time_open}, {"preallocate", true}};
                Stage stage(2, {transfer("w", "write", way.with(more)),
                                transfer("r", "read", way.with({{"verify", true}, {"cache", "drop"}}))});
                for (const RankResult& result : stage.run(0)) {
                    CHECK_FALSE(result.failure);
                    CHECK(result.open > 0);
                    CHECK(result.close > 0);
                    CHECK(result.slowest > 0);
                }
                CHECK(sum_of(stage.run(1)).verified == kAllBytes);
            }
        }
    });
}

TEST_CASE("the sample states the settings in effect, and has one latency per transfer") {
    for_every_way([](const Way& way) {
        const TestDirectory place;
        const Answers answers = run_plan(place.path(), 2, {transfer("w", "write", way.with({}))});
        const Json sample = answers.sample("w");
        CHECK(sample.at("effective").at("backend") == way.backend);
        CHECK(sample.at("effective").at("queue_depth") == way.queue_depth);
        CHECK(calls_in(sample.at("histograms").at("write")) == sample.at("operations"));
        CHECK(answers.messages.back().at("status") == "ok");
    });
}

TEST_CASE("O_DIRECT is refused by backends that copy data, and works elsewhere unless the file system lacks it") {
    for_every_way([](const Way& way) {
        const TestDirectory place;
        const Json direct = way.with({{"direct", true}});
        Json verified = direct;
        verified["verify"] = true;
        const Answers answers =
            run_plan(place.path(), 2, {transfer("w", "write", direct), transfer("r", "read", verified)});
        const std::string status = answers.last("done").at("status");
        if (way.backend == "stdio" || way.backend == "mmap") {
            CHECK(status == "refused");
            CHECK(answers.last("error").at("where").at("key") == "phases[0].direct");
        } else if (status == "ok") {
            CHECK(answers.sample("r").at("effective").at("direct") == true);
            CHECK(answers.sample("r").at("effective").at("verified_bytes") == kAllBytes);
        } else {
            CHECK(answers.last("error").at("what") == "this file system does not support O_DIRECT");
        }
    });
}
