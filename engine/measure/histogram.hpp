// Latency histogram: log-linear buckets with a fixed map (docs/reference/engine.md), mergeable by adding counts.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace strakes {

// One per rank: a cache line of its own, so that ranks do not share one.
class alignas(64) Histogram {
  public:
    static constexpr int kSubBits = 6;
    static constexpr std::uint64_t kMaxNs = (std::uint64_t{1} << 44U) - 1;  // 4.9 hours; longer ones count as this

    // The bucket of a value not above kMaxNs. Below 2^kSubBits the shift is 0 and the bucket is the value.
    static constexpr std::uint32_t bucket_of(std::uint64_t ns) noexcept {
        const auto shift = static_cast<std::uint32_t>(std::bit_width(ns | kSubCount) - 1 - kSubBits);
        return (shift << static_cast<unsigned>(kSubBits)) + static_cast<std::uint32_t>(ns >> shift);
    }

    // Smallest value of a bucket, and how many integers it holds.
    static constexpr std::uint64_t lower_edge(std::uint32_t bucket) noexcept {
        if (bucket < kSubCount) return bucket;
        const std::uint32_t shift = shift_of(bucket);
        return static_cast<std::uint64_t>(bucket - (shift << static_cast<unsigned>(kSubBits))) << shift;
    }
    static constexpr std::uint64_t width(std::uint32_t bucket) noexcept {
        return bucket < kSubCount ? 1 : std::uint64_t{1} << shift_of(bucket);
    }

    // By one thread at a time; another one may merge it into its own meanwhile. No branch but a conditional move, no
    // total kept: one read, one addition, one write.
    void record(std::uint64_t ns) noexcept {
        std::uint64_t& count = counts_[bucket_of(ns < kMaxNs ? ns : kMaxNs)];
        __atomic_store_n(&count, __atomic_load_n(&count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    }

    void merge(const Histogram& other) noexcept;
    // So many values of one bucket; those of a bucket there is not are left out.
    void add(std::uint32_t bucket, std::uint64_t values) noexcept {
        if (bucket < kBuckets) counts_[bucket] += values;
    }
    void clear() noexcept { counts_.fill(0); }

    std::uint64_t count() const noexcept;

    // Nanoseconds below or at which a share q (0..1) of the values lies: the middle of the bucket that holds the value
    // of rank ceil(q * count). 0 when nothing was recorded.
    double quantile(double q) const noexcept;

    // (bucket, count), ascending.
    using Buckets = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
    // Those in use.
    Buckets buckets() const { return buckets_since({}); }
    // What has come since the histogram was as `before`.
    Buckets buckets_since(const Histogram& before) const;

  private:
    static constexpr std::uint64_t kSubCount = std::uint64_t{1} << static_cast<unsigned>(kSubBits);
    static constexpr std::uint32_t shift_of(std::uint32_t bucket) noexcept {
        return (bucket >> static_cast<unsigned>(kSubBits)) - 1;
    }
    static constexpr std::size_t kBuckets = std::size_t{44 - kSubBits + 1} << static_cast<unsigned>(kSubBits);

    std::array<std::uint64_t, kBuckets> counts_{};
};

static_assert(sizeof(Histogram) < std::size_t{24} * 1024);

}  // namespace strakes
