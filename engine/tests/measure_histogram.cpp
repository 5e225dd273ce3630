// The histogram compared with exact quantiles and the documented bucket map.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "measure/histogram.hpp"

using strakes::Histogram;

namespace {

// The formula of docs/reference/engine.md.
std::uint64_t documented_bucket(std::uint64_t v) {
    constexpr std::uint64_t b = Histogram::kSubBits;
    if (v < (std::uint64_t{1} << b)) return v;
    std::uint64_t e = 63;
    while ((v >> e) == 0) --e;
    return (e - b + 1) * (std::uint64_t{1} << b) + (v >> (e - b)) - (std::uint64_t{1} << b);
}

std::vector<std::uint64_t> latencies(std::uint64_t seed, std::size_t count, double sigma) {
    std::mt19937_64 random(seed);
    std::lognormal_distribution<double> draw(8.0, sigma);
    std::vector<std::uint64_t> values(count);
    for (auto& value : values) value = static_cast<std::uint64_t>(std::min(draw(random), 1e12));
    return values;
}

}  // namespace

TEST_CASE("the bucket map is the documented one at every edge") {
    for (std::uint64_t v = 0; v < 4096; ++v) CHECK(Histogram::bucket_of(v) == documented_bucket(v));
    for (unsigned bit = 1; bit < 44; ++bit) {
        const std::uint64_t power = std::uint64_t{1} << bit;
        for (const std::uint64_t v : {power - 1, power, power + 1, power + power / 2}) {
            CHECK(Histogram::bucket_of(v) == documented_bucket(v));
        }
    }
    CHECK(Histogram::bucket_of(Histogram::kMaxNs) == documented_bucket(Histogram::kMaxNs));
}

TEST_CASE("buckets cover the values without gaps or overlap, each within 0.8 percent of its middle") {
    const std::uint32_t last = Histogram::bucket_of(Histogram::kMaxNs);
    for (std::uint32_t bucket = 0; bucket <= last; ++bucket) {
        const std::uint64_t low = Histogram::lower_edge(bucket);
        const std::uint64_t width = Histogram::width(bucket);
        REQUIRE(Histogram::bucket_of(low) == bucket);
        REQUIRE(Histogram::bucket_of(low + width - 1) == bucket);
        if (bucket < last) REQUIRE(Histogram::lower_edge(bucket + 1) == low + width);
        const double middle = static_cast<double>(low) + static_cast<double>(width - 1) / 2;
        if (low > 0) REQUIRE((middle - static_cast<double>(low)) / static_cast<double>(low) <= 0.008);
    }
}

TEST_CASE("merging two histograms equals recording both") {
    Histogram first;
    Histogram second;
    Histogram both;
    for (const auto value : latencies(7, 5000, 2.0)) {
        first.record(value);
        both.record(value);
    }
    for (const auto value : latencies(8, 3000, 1.0)) {
        second.record(value);
        both.record(value);
    }
    first.merge(second);
    CHECK(first.buckets() == both.buckets());
    CHECK(first.count() == 8000);
}

TEST_CASE("longer latencies count as the longest") {
    Histogram histogram;
    histogram.record(UINT64_MAX);
    histogram.record(Histogram::kMaxNs);
    REQUIRE(histogram.buckets().size() == 1);
    CHECK(histogram.buckets()[0].first == Histogram::bucket_of(Histogram::kMaxNs));
    CHECK(histogram.buckets()[0].second == 2);
}

TEST_CASE("an empty histogram has no buckets") {
    Histogram histogram;
    CHECK(histogram.buckets().empty());
    histogram.record(1234);
    histogram.clear();
    CHECK(histogram.count() == 0);
    CHECK(histogram.buckets().empty());
}
