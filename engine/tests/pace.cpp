// Rate limits (`impact`): every kind of phase stays below its limit, and only by waiting.
#include "team/pace.hpp"

#include <doctest/doctest.h>

#include <chrono>

#include "support.hpp"

namespace strakes::tests {

namespace {

Answers run_under(const Json& impact, const Json& plan) {
    const TestDirectory directory;
    return run_session(plan_message(directory.path(), plan, {{"impact", impact}}));
}

// A rank may catch up on this much time after slow operations (kCreditNs in team/pace.hpp).
constexpr double kCreditS = 0.1;

const Clock& kClock = Clock::system();

}  // namespace

TEST_CASE("each operation waits for its cost under the share of the limit") {
    const std::uint64_t start = kClock.now();
    Pace pace({.bytes_per_s = 0, .operations_per_s = 1000, .share = 1}, 2, kClock, nullptr, start, UINT64_MAX);
    std::uint64_t now = start;
    for (int i = 0; i < 50; ++i) now = pace.hold(now, {.operations = 1, .bytes = 1000, .ticks = 0});
    CHECK(kClock.to_seconds(elapsed(start, now)) >= 0.0995);
    CHECK(static_cast<double>(pace.held_ns()) >= 99.5e6);
}

TEST_CASE("the larger of the costs of bytes and operations counts") {
    const std::uint64_t start = kClock.now();
    Pace pace({.bytes_per_s = 1e6, .operations_per_s = 1e6, .share = 1}, 1, kClock, nullptr, start, UINT64_MAX);
    const std::uint64_t now = pace.hold(start, {.operations = 1, .bytes = 50'000, .ticks = 0});
    CHECK(kClock.to_seconds(elapsed(start, now)) >= 0.0498);
}

TEST_CASE("with a share of the time, a slow operation causes a longer wait than a fast one") {
    const std::uint64_t start = kClock.now();
    Pace pace({.bytes_per_s = 0, .operations_per_s = 0, .share = 0.25}, 1, kClock, nullptr, start, UINT64_MAX);
    const std::uint64_t ended = kClock.wait(start, 20'000'000);
    const std::uint64_t now = pace.hold(ended, {.operations = 1, .bytes = 0, .ticks = elapsed(start, ended)});
    CHECK(kClock.to_seconds(elapsed(ended, now)) >= 0.0598);
}

TEST_CASE("there is no wait after a halt, or after the time of the phase") {
    std::atomic<Halt> halt{Halt::cancel};
    const Impact slow{.bytes_per_s = 0, .operations_per_s = 1e-3, .share = 1};
    Pace halted(slow, 1, kClock, &halt, kClock.now(), UINT64_MAX);
    static_cast<void>(halted.hold(kClock.now(), {.operations = 1, .bytes = 0, .ticks = 0}));
    const std::uint64_t start = kClock.now();
    Pace over(slow, 1, kClock, nullptr, start, start);
    static_cast<void>(over.hold(kClock.now(), {.operations = 1, .bytes = 0, .ticks = 0}));
    CHECK(halted.held_ns() + over.held_ns() < 1'000'000'000);
}

TEST_CASE("all ranks together create no more files per second than the limit, and report how long they waited") {
    const Answers answers =
        run_under({{"operations_per_s", 200}}, plan_of({metadata("create", "file-create", {{"items", 40}})}, 2));
    const Json sample = answers.sample("create");
    CHECK(sample["elapsed_s"].get<double>() >= 80 / 200.0 - 0.001);
    CHECK(sample["impact"]["operations_per_s"] == 200);
    CHECK(sample["impact"]["share"] == 1);
    CHECK(sample["impact"]["held_back_s"].get<double>() >=
          2 * (80 / 200.0 - kCreditS) - sample["elapsed_s"].get<double>());
    CHECK(sample["operations"] == 80);
}

TEST_CASE("data are moved within the limit of bytes by every backend") {
    for (const char* backend : {"posix", "stdio", "mmap"}) {
        CAPTURE(backend);
        const Json write =
            transfer("write", "write",
                     {{"backend", backend}, {"transfer_bytes", 65536}, {"block_bytes", 524288}, {"segments", 1}});
        const Json sample = run_under({{"bytes_per_s", 4 << 20}}, plan_of({write}, 2)).sample("write");
        CHECK(sample["elapsed_s"].get<double>() >= 0.249);
        CHECK(sample["impact"]["held_back_s"].get<double>() > 0);
    }
}

TEST_CASE("a phase that is out of time lasts as long as its operations cost") {
    const Json stop = {{"rule", "stonewall"}, {"seconds", 0.001}};
    const Json write = transfer(
        "write", "write", {{"transfer_bytes", 1 << 20}, {"block_bytes", 8 << 20}, {"segments", 1}, {"stop", stop}});
    const Json create = metadata("create", "file-create", {{"items", 1000}, {"stop", stop}});
    const Answers answers =
        run_under({{"bytes_per_s", 8 << 20}, {"operations_per_s", 20}}, plan_of({write, create}, 2));
    CHECK(answers.sample("write")["bytes"] == 2 << 20);
    CHECK(answers.sample("write")["elapsed_s"].get<double>() >= 0.249);
    CHECK(answers.sample("create")["elapsed_s"].get<double>() >= 0.099);
}

#ifdef STRAKES_URING
TEST_CASE("requests in flight together stay within the limit") {
    const Json write = transfer("write", "write",
                                {{"backend", "uring"},
                                 {"queue_depth", 4},
                                 {"transfer_bytes", 65536},
                                 {"block_bytes", 1 << 20},
                                 {"segments", 1}});
    const Answers answers = run_under({{"bytes_per_s", 4 << 20}}, plan_of({write}, 1));
    CHECK(answers.sample("write")["elapsed_s"].get<double>() >= 0.249);
}
#endif

TEST_CASE("writers and readers divide the limit among themselves, not among all ranks") {
    const Json write = transfer("dump", "write",
                                {{"layout", "shared-file"},
                                 {"writers", 1},
                                 {"transfer_bytes", 65536},
                                 {"block_bytes", 262144},
                                 {"segments", 1}});
    const Json stage = {{"kind", "stage"}, {"name", "load"}, {"transfer_bytes", 65536}, {"readers_per_node", 2}};
    const Answers answers = run_under({{"bytes_per_s", 4 << 20}}, plan_of({write, stage}, 4));
    for (const char* name : {"dump", "load"}) {
        CAPTURE(name);
        const Json sample = answers.sample(name);
        CHECK(sample["elapsed_s"].get<double>() >= 0.249);
        // A rank with a quarter of the limit would take a second.
        CHECK(sample["impact"]["held_back_s"].get<double>() < 0.9);
    }
}

TEST_CASE("small files are created within the limit, and removed within it when the plan ends") {
    const Json fill = {{"kind", "small-files"}, {"name", "fill"},         {"mode", "accumulate"},
                       {"size_low_bytes", 500}, {"size_high_bytes", 500}, {"files_per_rank", 20}};
    const auto began = std::chrono::steady_clock::now();
    const Answers answers = run_under({{"operations_per_s", 200}}, plan_of({fill}, 2));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    CHECK(answers.sample("fill")["elapsed_s"].get<double>() >= 0.199);
    CHECK(took.count() >= 0.398 - kCreditS);
    CHECK(answers.last("done")["cleaned"] == true);
}

TEST_CASE("a plan whose next operation is far in the future ends at once when it is cancelled") {
    const TestDirectory directory;
    const Json plan = plan_of({metadata("create", "file-create", {{"items", 1000}})}, 2);
    const Answers answers =
        run_session(plan_message(directory.path(), plan, {{"impact", {{"operations_per_s", 0.01}}}, {"limit_s", 500}}),
                    200, {{"type", "cancel"}, {"version", 1}, {"id", "p"}});
    CHECK(answers.last("done")["status"] == "cancelled");
    CHECK(directory.entries().empty());
}

TEST_CASE("a plan without an impact, or with one that limits nothing, has none in its sample") {
    const Json plan = plan_of({metadata("create", "file-create", {{"items", 4}})}, 1);
    CHECK_FALSE(run_under({{"share", 1}}, plan).sample("create").contains("impact"));
    CHECK_FALSE(run_under(Json::object(), plan).sample("create").contains("impact"));
}

TEST_CASE("an invalid impact is refused, and its key is named") {
    const Json plan = plan_of({metadata("create", "file-create", {{"items", 4}})}, 1);
    const std::vector<std::pair<Json, std::string>> bad = {{{{"share", 0}}, "impact.share"},
                                                           {{{"share", 1.5}}, "impact.share"},
                                                           {{{"bytes_per_s", -1}}, "impact.bytes_per_s"},
                                                           {{{"operations_per_s", "many"}}, "impact.operations_per_s"},
                                                           {{{"bytes", 1}}, "impact.bytes"},
                                                           {5, "impact"}};
    for (const auto& [impact, key] : bad) {
        CAPTURE(key);
        const Answers answers = run_under(impact, plan);
        CHECK(answers.last("done")["status"] == "refused");
        CHECK(answers.last("error")["where"]["key"] == key);
    }
}

}  // namespace strakes::tests
