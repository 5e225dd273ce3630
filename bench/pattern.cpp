// Speed of generating and verifying the engine's data on one core, in a buffer that stays in the cache. Prints one JSON
// object: bytes per second of processor time for each operation, as the median of the trials.
//
//   pattern BYTES MS TRIALS
#include "data/pattern.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

// Thread CPU time, so that other processes on the core do not count.
double processor_s() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Repeats work for duration_s seconds of processor time, at increasing file offsets. Returns bytes per second.
template <class Work>
double bytes_per_s(std::size_t bytes, double duration_s, Work work) {
    const double start = processor_s();
    std::uint64_t offset = 0;
    double taken = 0;
    do {
        for (int i = 0; i < 64; ++i, offset += bytes) work(offset);
        taken = processor_s() - start;
    } while (taken < duration_s);
    return static_cast<double>(offset) / taken;
}

template <class Work>
double median(std::size_t bytes, double duration_s, std::size_t trials, Work work) {
    std::vector<double> found(trials);
    for (double& one : found) one = bytes_per_s(bytes, duration_s, work);
    std::ranges::nth_element(found, found.begin() + static_cast<std::ptrdiff_t>(trials / 2));
    return found[trials / 2];
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    const auto bytes = static_cast<std::size_t>(std::atoll(argv[1]));
    const double duration_s = 1e-3 * std::atoi(argv[2]);
    const auto trials = static_cast<std::size_t>(std::atoi(argv[3]));
    if (bytes == 0 || trials == 0) return 2;
    std::vector<std::byte> buffer(bytes);
    const strakes::Stream stream = strakes::stream_of(1, 1, 1);
    const strakes::Content mixed{.stream = stream, .compressible_percent = 50, .duplicate_percent = 20};
    bool wrong = false;
    const auto fill = [&](const strakes::Content& content) {
        return [&](std::uint64_t offset) { strakes::fill(buffer, content, offset); };
    };
    // The buffer is filled once, so every call verifies the same data.
    const auto verify = [&](const strakes::Content& content) {
        strakes::fill(buffer, content, 0);
        return [&](std::uint64_t) { wrong |= strakes::verify(buffer, content, 0).has_value(); };
    };
    const strakes::Content plain{.stream = stream};
    std::printf("{\"generated\": %.0f", median(bytes, duration_s, trials, fill(plain)));
    std::printf(", \"verified\": %.0f", median(bytes, duration_s, trials, verify(plain)));
    std::printf(", \"generated, compressible and with duplicates\": %.0f",
                median(bytes, duration_s, trials, fill(mixed)));
    std::printf(", \"verified, compressible and with duplicates\": %.0f}\n",
                median(bytes, duration_s, trials, verify(mixed)));
    return wrong ? 1 : 0;
}
