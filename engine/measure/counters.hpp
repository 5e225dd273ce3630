// What the node did around a phase: CPU, memory, network and devices from /proc, as differences of two readings.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace strakes {

struct CpuTimes {
    double user_s = 0;    // with nice
    double system_s = 0;  // with interrupts
    double iowait_s = 0;
    double idle_s = 0;
};
struct MemoryState {
    std::uint64_t available_bytes = 0;
    std::uint64_t page_cache_bytes = 0;  // "Cached": tmpfs counts, too
};
struct NetworkBytes {
    std::uint64_t receive = 0;
    std::uint64_t send = 0;
};
struct DeviceState {
    std::uint64_t read_bytes = 0;
    std::uint64_t write_bytes = 0;
    std::uint64_t busy_ms = 0;
};
using Devices = std::map<std::string, DeviceState, std::less<>>;

struct Counters {
    CpuTimes cpu;
    MemoryState memory;
    NetworkBytes network;
    Devices devices;
};

struct CounterDelta {
    CpuTimes cpu;
    std::uint64_t memory_available_bytes = 0;  // after
    std::uint64_t page_cache_before_bytes = 0;
    std::uint64_t page_cache_after_bytes = 0;
    NetworkBytes network;
    Devices devices;  // those that moved
};

// The text of /proc/stat, /proc/meminfo, /proc/net/dev (all but lo) and /proc/diskstats (all but partitions and ram
// disks). What is missing or malformed stays 0.
CpuTimes parse_stat(std::string_view text, double ticks_per_second);
MemoryState parse_meminfo(std::string_view text);
NetworkBytes parse_net_dev(std::string_view text);
Devices parse_diskstats(std::string_view text);

// Of this machine. Not for timed sections: it reads four files.
Counters read_counters();

CounterDelta difference(const Counters& before, const Counters& after);
// Of two times of which one follows the other.
CounterDelta joined(CounterDelta first, const CounterDelta& next);

// The object `counters` of a sample (docs/reference/engine.md).
nlohmann::json to_json(const CounterDelta& delta);

}  // namespace strakes
