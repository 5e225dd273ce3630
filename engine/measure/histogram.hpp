// Latency histogram: log-linear buckets with a fixed map (docs/reference/engine.md), mergeable by adding counts.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace strakes {

// One per rank, aligned to a cache line to avoid false sharing.
class alignas(64) Histogram {
  public:
    static constexpr int kSubBits = 6;
    static constexpr std::uint64_t kMaxNs = (std::uint64_t{1} << 44U) - 1;  // 4.9 hours; longer times count as this

    // Return the bucket of a value up to kMaxNs. Below 2^kSubBits the shift is 0 and the bucket is the value.
    static constexpr std::uint32_t bucket_of(std::uint64_t ns) noexcept {
        const auto shift = static_cast<std::uint32_t>(std::bit_width(ns | kSubCount) - 1 - kSubBits);
        return (shift << static_cast<unsigned>(kSubBits)) + static_cast<std::uint32_t>(ns >> shift);
    }

    // lower_edge() returns the smallest value of a bucket, width() the number of integers in the bucket.
    static constexpr std::uint64_t lower_edge(std::uint32_t bucket) noexcept {
        if (bucket < kSubCount) return bucket;
        const std::uint32_t shift = shift_of(bucket);
        return static_cast<std::uint64_t>(bucket - (shift << static_cast<unsigned>(kSubBits))) << shift;
    }
    static constexpr std::uint64_t width(std::uint32_t bucket) noexcept {
        return bucket < kSubCount ? 1 : std::uint64_t{1} << shift_of(bucket);
    }

    // Count a value. One thread may record while other threads merge this histogram into theirs. Costs one load, one
    // addition and one store: the conditional compiles to a move, and no total is kept.
    void record(std::uint64_t ns) noexcept {
        std::uint64_t& count = counts_[bucket_of(ns < kMaxNs ? ns : kMaxNs)];
        __atomic_store_n(&count, __atomic_load_n(&count, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
    }

    void merge(const Histogram& other) noexcept {
        for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += __atomic_load_n(&other.counts_[i], __ATOMIC_RELAXED);
    }
    void add(std::uint32_t bucket, std::uint64_t values) noexcept {
        if (bucket < kBuckets) counts_[bucket] += values;
    }
    void clear() noexcept { counts_.fill(0); }

    std::uint64_t count() const noexcept { return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0}); }

    // Pairs (bucket, count), ascending.
    using Buckets = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
    [[nodiscard]] Buckets buckets() const {
        Buckets used;
        for (std::uint32_t i = 0; i < kBuckets; ++i)
            if (counts_[i] > 0) used.emplace_back(i, counts_[i]);
        return used;
    }

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        Buckets used;
        if constexpr (std::is_const_v<Self>) used = self.buckets();
        archive(used);
        if constexpr (!std::is_const_v<Self>)
            for (const auto& [bucket, values] : used) self.add(bucket, values);
    }

  private:
    static constexpr std::uint64_t kSubCount = std::uint64_t{1} << static_cast<unsigned>(kSubBits);
    static constexpr std::uint32_t shift_of(std::uint32_t bucket) noexcept {
        return (bucket >> static_cast<unsigned>(kSubBits)) - 1;
    }
    static constexpr std::size_t kBuckets = std::size_t{44 - kSubBits + 1} << static_cast<unsigned>(kSubBits);

    std::array<std::uint64_t, kBuckets> counts_{};
};

static_assert(Histogram::bucket_of(63) == 63 && Histogram::bucket_of(64) == 64 && Histogram::bucket_of(128) == 128);
static_assert(sizeof(Histogram) < std::size_t{24} * 1024);

}  // namespace strakes
