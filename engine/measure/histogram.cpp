// Histogram operations that are not used in timed sections.
#include "measure/histogram.hpp"

#include <cmath>
#include <numeric>

namespace strakes {

static_assert(Histogram::bucket_of(63) == 63 && Histogram::bucket_of(64) == 64 && Histogram::bucket_of(128) == 128);

void Histogram::merge(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += __atomic_load_n(&other.counts_[i], __ATOMIC_RELAXED);
}

std::uint64_t Histogram::count() const noexcept {
    return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

double Histogram::quantile(double q) const noexcept {
    const std::uint64_t total = count();
    if (total == 0) return 0.0;
    const double rank = std::ceil(q * static_cast<double>(total));
    const std::uint64_t wanted = rank < 1.0                           ? 1
                                 : rank >= static_cast<double>(total) ? total
                                                                      : static_cast<std::uint64_t>(rank);
    std::uint64_t seen = 0;
    std::uint32_t bucket = 0;
    while (seen + counts_[bucket] < wanted) seen += counts_[bucket++];
    return static_cast<double>(lower_edge(bucket)) + static_cast<double>(width(bucket) - 1) / 2.0;
}

Histogram::Buckets Histogram::buckets_since(const Histogram& before) const {
    Buckets used;
    for (std::uint32_t i = 0; i < kBuckets; ++i) {
        if (counts_[i] > before.counts_[i]) used.emplace_back(i, counts_[i] - before.counts_[i]);
    }
    return used;
}

}  // namespace strakes
