// Clock, counters of the system, latency histogram and page-cache residency.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "measure/clock.hpp"
#include "measure/counters.hpp"
#include "measure/histogram.hpp"
#include "measure/page_cache.hpp"
#include "system/descriptor.hpp"

using namespace strakes;

TEST_CASE("a negative difference is 0") {
    CHECK(elapsed(10, 25) == 15);
    CHECK(elapsed(25, 10) == 0);
    CHECK(elapsed(0, UINT64_MAX) == UINT64_MAX);
}

TEST_CASE("the clock is one of the two documented ones, and the same in every call") {
    const Clock& clock = Clock::system();
    CHECK((clock.name() == "tsc" || clock.name() == "monotonic"));
    CHECK(&clock == &Clock::system());
}

TEST_CASE("a second of ticks is a second to within 0.1 percent, and days of ticks do not overflow") {
    const Clock& clock = Clock::system();
    // Read between two readings of the system's clock, so that a preemption widens the bounds instead of failing the
    // test.
    const std::uint64_t outer_start = Clock::monotonic_ns();
    const std::uint64_t start = clock.now();
    const std::uint64_t inner_start = Clock::monotonic_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const std::uint64_t inner_end = Clock::monotonic_ns();
    const std::uint64_t end = clock.now();
    const std::uint64_t outer_end = Clock::monotonic_ns();
    const double measured = static_cast<double>(clock.to_ns(elapsed(start, end)));
    CHECK(measured >= 0.999 * static_cast<double>(inner_end - inner_start));
    CHECK(measured <= 1.001 * static_cast<double>(outer_end - outer_start));
    CHECK(clock.to_seconds(elapsed(start, end)) == doctest::Approx(measured * 1e-9));

    const std::uint64_t ticks = elapsed(start, end);
    const std::uint64_t many = UINT64_MAX / ticks / 16;
    const double expected = measured * static_cast<double>(many);
    CHECK(static_cast<double>(clock.to_ns(ticks * many)) == doctest::Approx(expected).epsilon(1e-6));
}

TEST_CASE("ticks do not decrease within a thread") {
    const Clock& clock = Clock::system();
    std::uint64_t last = clock.now();
    bool backwards = false;
    for (int i = 0; i < 100000; ++i) {
        const std::uint64_t now = clock.now();
        backwards = backwards || now < last;
        last = now;
    }
    CHECK_FALSE(backwards);
}

namespace {

constexpr const char* kStat =
    "cpu  10607 100 4018 243749 773 5 81 11 0 0\n"
    "cpu0 1537 0 993 127124 32 0 12 2 0 0\n"
    "cpu1 9069 0 3025 116625 740 0 69 9 0 0\n"
    "intr 1234 0 0\n"
    "ctxt 99\n";

constexpr const char* kMeminfo =
    "MemTotal:       24684084 kB\n"
    "MemFree:        23000000 kB\n"
    "MemAvailable:   24224384 kB\n"
    "Buffers:            3816 kB\n"
    "Cached:           428024 kB\n"
    "SwapCached:           77 kB\n";

constexpr const char* kNetDev =
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier "
    "compressed\n"
    "    lo:    3193      29    0    0    0     0          0         0     3193      29    0    0    0     0       0   "
    "       0\n"
    "  eth0: 472501576   11049    0    0    0     0          0         0   476883    5550    0    0    0     0       "
    "0          0\n"
    "ib0:1000       2    0    0    0     0          0         0       17       1    0    0    0     0       0          "
    "0\n";

constexpr const char* kDiskstats =
    "   1       0 ram0 5 0 40 1 0 0 0 0 0 1 1 0 0 0 0\n"
    "   7       0 loop0 93 0 2173 2 6 0 4101 2 0 0 7 0 0 0 0 5 1\n"
    " 254       0 vda 115573 30643 4510402 14674 31882 41551 3997152 12488 0 11396 27779 8633 63 863776 493 3967 121\n"
    " 254       1 vda1 115000 30643 4500000 14674 31882 41551 3997152 12488 0 11396 27779\n"
    " 259       0 nvme0n1 10 0 80 1 20 0 160 2 0 3 3\n"
    " 259       1 nvme0n1p1 10 0 80 1 20 0 160 2 0 3 3\n"
    " 253       0 dm-1 1 0 8 0 0 0 0 0 0 1 1\n"
    " 253      10 dm-10 2 0 16 0 0 0 0 0 0 2 2\n";

}  // namespace

TEST_CASE("CPU times are for the whole node, nice is part of user, and interrupts are part of system") {
    const CpuTimes times = parse_stat(kStat, 100.0);
    CHECK(times.user_s == doctest::Approx(107.07));
    CHECK(times.system_s == doctest::Approx(41.04));
    CHECK(times.iowait_s == doctest::Approx(7.73));
    CHECK(times.idle_s == doctest::Approx(2437.49));
}

TEST_CASE("memory is the available memory and the page cache") {
    const MemoryState memory = parse_meminfo(kMeminfo);
    CHECK(memory.available_bytes == 24224384ULL * 1024);
    CHECK(memory.page_cache_bytes == 428024ULL * 1024);
}

TEST_CASE("network bytes omit the loopback, and names need no blank after the colon") {
    const NetworkBytes bytes = parse_net_dev(kNetDev);
    CHECK(bytes.receive == 472501576 + 1000);
    CHECK(bytes.send == 476883 + 17);
}

TEST_CASE("devices are whole disks: partitions and RAM disks are omitted, dm-10 is not a partition of dm-1") {
    const Devices devices = parse_diskstats(kDiskstats);
    std::vector<std::string> names;
    for (const auto& [name, state] : devices) names.push_back(name);
    CHECK(names == std::vector<std::string>{"dm-1", "dm-10", "loop0", "nvme0n1", "vda"});
    CHECK(devices.at("vda").read_bytes == 4510402ULL * 512);
    CHECK(devices.at("vda").write_bytes == 3997152ULL * 512);
    CHECK(devices.at("vda").busy_ms == 11396);
}

TEST_CASE("empty or truncated text gives zeros and no crash") {
    for (const char* text : {"", "\n\n", "cpu", "cpu  x y", "MemAvailable", "eth0:", " 254 0 vda 1", ":::\n \t\n"}) {
        CHECK(parse_stat(text, 100.0).system_s == 0);
        CHECK(parse_meminfo(text).available_bytes == 0);
        CHECK(parse_net_dev(text).send == 0);
        for (const auto& [name, state] : parse_diskstats(text)) CHECK(state.write_bytes == 0);
    }
}

TEST_CASE("a difference keeps the devices that moved, and is never negative") {
    Counters before{parse_stat(kStat, 100.0), parse_meminfo(kMeminfo), parse_net_dev(kNetDev),
                    parse_diskstats(kDiskstats)};
    Counters after = before;
    after.cpu.user_s += 1.5;
    after.cpu.iowait_s -= 0.5;
    after.memory.page_cache_bytes += 4096;
    after.network.receive += 10;
    after.devices.at("vda").write_bytes += 8192;
    after.devices.at("vda").busy_ms += 250;
    after.devices.at("nvme0n1") = DeviceState{};  // replaced by another device
    after.devices.emplace("loop7", DeviceState{512, 0, 0});

    const CounterDelta delta = difference(before, after);
    CHECK(delta.cpu.user_s == doctest::Approx(1.5));
    CHECK(delta.cpu.iowait_s == 0);
    CHECK(delta.page_cache_after_bytes - delta.page_cache_before_bytes == 4096);
    CHECK(delta.network.receive == 10);
    REQUIRE(delta.devices.size() == 2);
    CHECK(delta.devices.at("vda").write_bytes == 8192);
    CHECK(delta.devices.at("loop7").read_bytes == 512);
}

TEST_CASE("busy time that wraps at 32 bits is counted") {
    Counters before;
    Counters after;
    before.devices.emplace("sda", DeviceState{0, 0, 4294967000});
    after.devices.emplace("sda", DeviceState{0, 0, 704});
    CHECK(difference(before, after).devices.at("sda").busy_ms == 1000);
}

TEST_CASE("the JSON has the documented keys") {
    CounterDelta delta;
    delta.cpu.system_s = 0.25;
    delta.devices.emplace("vda", DeviceState{1, 2, 1500});
    const nlohmann::json json = to_json(delta);
    for (const char* key : {"cpu_user_s", "cpu_system_s", "cpu_iowait_s", "cpu_idle_s", "memory_available_bytes",
                            "page_cache_before_bytes", "page_cache_after_bytes", "network_receive_bytes",
                            "network_send_bytes", "devices"}) {
        CHECK(json.contains(key));
    }
    CHECK(json.size() == 10);
    CHECK(json["cpu_system_s"] == 0.25);
    CHECK(json["devices"]["vda"] == nlohmann::json({{"read_bytes", 1}, {"write_bytes", 2}, {"busy_s", 1.5}}));
    CHECK(to_json(CounterDelta{})["devices"].is_object());
}

TEST_CASE("this machine's counters can be read") {
    const Counters counters = read_counters();
    CHECK(counters.memory.available_bytes > 0);
    CHECK(counters.cpu.idle_s + counters.cpu.user_s + counters.cpu.system_s > 0);
}

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
    Histogram first, second, both;
    for (const auto& [one, values] : {std::pair(&first, latencies(7, 5000, 2.0)), {&second, latencies(8, 3000, 1.0)}}) {
        for (const std::uint64_t value : values) {
            one->record(value);
            both.record(value);
        }
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

namespace {

// An unnamed file in the temporary directory.
struct ScratchFile {
    ScratchFile() {
        std::string path = std::filesystem::temp_directory_path() / "strakes-test-XXXXXX";
        file = Descriptor(::mkstemp(path.data()));
        ::unlink(path.c_str());
    }

    Descriptor file;
    int fd() const { return file.get(); }
    bool lives_in_memory() const {
        struct statfs facts{};
        return fstatfs(fd(), &facts) == 0 && facts.f_type == TMPFS_MAGIC;
    }
};

// Not a multiple of the page size: only the used part of the last page counts.
constexpr std::uint64_t kBytes = (std::uint64_t{3} << 20U) + 1000;

void write_and_sync(int fd) {
    const std::vector<char> data(kBytes, 'x');
    REQUIRE(write(fd, data.data(), data.size()) == static_cast<ssize_t>(kBytes));
    REQUIRE(fsync(fd) == 0);
}

}  // namespace

TEST_CASE("a file just written is resident, a dropped one is not, and both methods agree") {
    const ScratchFile file;
    write_and_sync(file.fd());
    for (const bool dropped : {false, true}) {
        if (dropped) {
            if (file.lives_in_memory()) return;
            REQUIRE(posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED) == 0);
        }
        const Residency best = strakes::residency(file.fd(), kBytes);
        CHECK(best.method != "none");
        CHECK(best.file_bytes == kBytes);
        CHECK(best.resident_bytes == (dropped ? 0 : kBytes));
        if (const auto cachestat = strakes::residency_by_cachestat(file.fd(), kBytes)) {
            CHECK(cachestat->method == "cachestat");
            CHECK(cachestat->resident_bytes == best.resident_bytes);
        }
        const Residency mincore = strakes::residency_by_mincore(file.fd(), kBytes).value_or(Residency{"refused", 0, 0});
        CHECK(mincore.method == "mincore");
        CHECK(mincore.resident_bytes == best.resident_bytes);
    }
}

TEST_CASE("a part that was read back is the resident part") {
    const ScratchFile file;
    if (file.lives_in_memory()) return;
    write_and_sync(file.fd());
    REQUIRE(posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED) == 0);
    REQUIRE(posix_fadvise(file.fd(), 0, 0, POSIX_FADV_RANDOM) == 0);
    std::vector<char> part(std::size_t{64} << 10U);
    REQUIRE(pread(file.fd(), part.data(), part.size(), 0) == static_cast<ssize_t>(part.size()));
    const Residency found = strakes::residency(file.fd(), kBytes);
    CHECK(found.resident_bytes >= part.size());
    CHECK(found.resident_bytes < kBytes);
}

TEST_CASE("an empty file has no resident bytes, and those of a pipe are unknown") {
    const ScratchFile file;
    CHECK(strakes::residency(file.fd(), 0).resident_bytes == 0);
    int ends[2] = {-1, -1};
    REQUIRE(pipe(ends) == 0);
    const Residency unknown = strakes::residency(ends[0], 4096);
    CHECK(unknown.resident_bytes == 0);
    CHECK_FALSE(strakes::residency_by_mincore(ends[0], 4096).has_value());
    close(ends[0]);
    close(ends[1]);
}
