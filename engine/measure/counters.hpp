// Activity of the node during a phase: CPU, memory, network and devices from /proc, as differences of two readings.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace strakes {

struct CpuTimes {
    double user_s = 0;    // user time, including nice
    double system_s = 0;  // system time, including interrupts
    double iowait_s = 0;
    double idle_s = 0;
};
struct MemoryState {
    std::uint64_t available_bytes = 0;
    std::uint64_t page_cache_bytes = 0;  // the kernel's "Cached", which includes tmpfs
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
    std::uint64_t memory_available_bytes = 0;  // available memory at the phase's end
    std::uint64_t page_cache_before_bytes = 0;
    std::uint64_t page_cache_after_bytes = 0;
    NetworkBytes network;
    Devices devices;  // only devices with activity

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.cpu, self.memory_available_bytes, self.page_cache_before_bytes, self.page_cache_after_bytes,
                self.network, self.devices);
    }
};

// Parse /proc/stat, /proc/meminfo, /proc/net/dev (without lo) and /proc/diskstats (without partitions and RAM disks).
// Missing or malformed numbers are 0.
CpuTimes parse_stat(std::string_view text, double ticks_per_second);
MemoryState parse_meminfo(std::string_view text);
NetworkBytes parse_net_dev(std::string_view text);
Devices parse_diskstats(std::string_view text);

// Read this machine's counters. Not for timed sections: it reads four files.
Counters read_counters();

CounterDelta difference(const Counters& before, const Counters& after);
// Return the object `counters` of a sample (docs/reference/engine.md).
nlohmann::json to_json(const CounterDelta& delta);

}  // namespace strakes
