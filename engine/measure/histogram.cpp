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

Histogram::Buckets Histogram::buckets() const {
    Buckets used;
    for (std::uint32_t i = 0; i < kBuckets; ++i)
        if (counts_[i] > 0) used.emplace_back(i, counts_[i]);
    return used;
}

}  // namespace strakes
