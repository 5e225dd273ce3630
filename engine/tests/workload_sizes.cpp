// Transfers of several sizes in one phase, and files of the first ranks only.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "support.hpp"
#include "workload/transfer_loop.hpp"

using namespace strakes;
using namespace strakes::tests;
namespace fs = std::filesystem;

TEST_CASE("sizes are drawn with their probabilities, and a seed gives the same sizes again") {
    const std::vector<SizeShare> shares = {
        {.bytes = 4096, .percent = 60}, {.bytes = 512, .percent = 3}, {.bytes = 65536, .percent = 37}};
    constexpr std::uint64_t kCalls = 20000;
    for (const std::uint64_t key : {1U, 2U, 99U}) {
        std::map<std::uint64_t, std::uint64_t> counts;
        for (std::uint64_t call = 0; call < kCalls; ++call) ++counts[size_of_call(shares, key, call, 65536)];
        CHECK(counts.size() == 3);
        for (const SizeShare& share : shares) {
            const double part = share.percent / 100.0;
            const double deviation = std::sqrt(kCalls * part * (1 - part));
            CHECK(std::abs(static_cast<double>(counts[share.bytes]) - kCalls * part) < 4.5 * deviation);
        }
        CHECK(size_of_call(shares, key, 7, 65536) == size_of_call(shares, key, 7, 65536));
    }
    CHECK(size_of_call({}, 1, 0, 8192) == 8192);
}

TEST_CASE("a mixed phase uses its sizes for reads and writes, and the data remain correct") {
    Stage stage(plan_of(
        {transfer("w", "write", {{"segments", 64}}),
         transfer(
             "m", "mixed",
             {{"segments", 64},
              {"read_percent", 50},
              {"verify", true},
              {"access", "random"},
              {"read_sizes", Json::array({{{"bytes", 1000}, {"percent", 100}}})},
              {"write_sizes", Json::array({{{"bytes", 100}, {"percent", 50}}, {{"bytes", 4096}, {"percent", 50}}})}}),
         transfer("r", "read", {{"segments", 64}, {"verify", true}})},
        1));
    REQUIRE_FALSE(stage.run(0).front().failure);
    const std::vector<RankResult> results = stage.run(1);
    const RankResult& mixed = results.front();
    REQUIRE_FALSE(mixed.failure);
    const std::uint64_t reads = mixed.verified_bytes / 1000;
    CHECK(mixed.verified_bytes % 1000 == 0);
    CHECK(reads > mixed.operations * 4 / 10);
    CHECK(reads < mixed.operations * 6 / 10);
    const auto writes = static_cast<double>(mixed.operations - reads);
    const double average = static_cast<double>(mixed.bytes - mixed.verified_bytes) / writes;
    CHECK(std::abs(average - 2098) < 4.5 * 1998 / std::sqrt(writes));
    CHECK_FALSE(stage.run(2).front().failure);
}

TEST_CASE("only the first ranks have files if the others do not write, and the others read nothing") {
    Stage stage(plan_of({transfer("w", "write", {{"layout", "file-per-process"}, {"first_ranks", 1}}),
                         transfer("r", "read", {{"layout", "file-per-process"}, {"verify", true}})},
                        3));
    const std::vector<RankResult> written = stage.run(0);
    for (const RankResult& result : written) CHECK_FALSE(result.failure);
    CHECK(written[0].bytes > 0);
    CHECK(written[1].operations == 0);
    CHECK(fs::exists(stage.path() / "data.0.data"));
    CHECK_FALSE(fs::exists(stage.path() / "data.1.data"));
    const std::vector<RankResult> read = stage.run(1);
    CHECK(read[0].bytes == written[0].bytes);
    CHECK(read[2].operations == 0);
    for (const RankResult& result : read) CHECK_FALSE(result.failure);
}
