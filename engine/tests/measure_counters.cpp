// Parsers on recorded /proc text, and differences between readings.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "measure/counters.hpp"

using namespace strakes;

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
