#include "measure/counters.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

namespace strakes {

namespace {

// /proc/diskstats counts units of 512 bytes on every device (Documentation/admin-guide/iostats.rst).
constexpr std::uint64_t kSectorBytes = 512;
constexpr std::uint64_t kBusyWrapMs = std::uint64_t{1} << 32U;  // the busy time of a device is a 32-bit counter

template <typename Each>
void for_each_line(std::string_view text, Each&& each) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) each(std::istringstream(line));
}

bool all_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Partitions append a number (sda -> sda1), after a "p" if the disk's name ends in a digit (nvme0n1 -> nvme0n1p1).
bool is_partition_of(std::string_view name, std::string_view disk) {
    if (disk.empty() || !name.starts_with(disk)) return false;
    std::string_view rest = name.substr(disk.size());
    if (all_digits(disk.substr(disk.size() - 1))) {
        if (!rest.starts_with('p')) return false;
        rest.remove_prefix(1);
    }
    return all_digits(rest);
}

bool is_ram_disk(std::string_view name) { return name.starts_with("ram") && all_digits(name.substr(3)); }

std::string read_text(const char* path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return std::move(text).str();
}

// Return the increase of a counter. Counters may decrease: iowait does by definition, and devices come and go.
template <typename Number>
Number grown(Number before, Number after) {
    return after > before ? after - before : Number{0};
}

std::optional<DeviceState> moved(const DeviceState& before, const DeviceState& after) {
    const bool wrapped = after.busy_ms < before.busy_ms && before.busy_ms - after.busy_ms > kBusyWrapMs / 2;
    const DeviceState delta{
        grown(before.read_bytes, after.read_bytes), grown(before.write_bytes, after.write_bytes),
        wrapped ? kBusyWrapMs - before.busy_ms + after.busy_ms : grown(before.busy_ms, after.busy_ms)};
    if (delta.read_bytes == 0 && delta.write_bytes == 0 && delta.busy_ms == 0) return std::nullopt;
    return delta;
}

}  // namespace

CpuTimes parse_stat(std::string_view text, double ticks_per_second) {
    CpuTimes times;
    for_each_line(text, [&](std::istringstream words) {
        std::string name;
        if (!(words >> name) || name != "cpu") return;
        // Columns: user nice system idle iowait irq softirq.
        std::array<double, 7> seconds{};
        for (double& value : seconds)
            if (words >> value) value /= ticks_per_second;
        times = {seconds[0] + seconds[1], seconds[2] + seconds[5] + seconds[6], seconds[4], seconds[3]};
    });
    return times;
}

MemoryState parse_meminfo(std::string_view text) {
    MemoryState memory;
    for_each_line(text, [&](std::istringstream words) {
        std::string key;
        std::uint64_t kib = 0;
        words >> key >> kib;
        if (key == "MemAvailable:") memory.available_bytes = kib * 1024;
        if (key == "Cached:") memory.page_cache_bytes = kib * 1024;
    });
    return memory;
}

NetworkBytes parse_net_dev(std::string_view text) {
    NetworkBytes bytes;
    for_each_line(text, [&](std::istringstream words) {
        std::string name;
        if (!std::getline(words >> std::ws, name, ':') || words.eof() || name == "lo") return;  // no numbers: a header
        // Columns: bytes packets errs drop fifo frame compressed multicast, received and then sent.
        std::array<std::uint64_t, 9> field{};
        for (std::uint64_t& value : field) words >> value;
        bytes.receive += field[0];
        bytes.send += field[8];
    });
    return bytes;
}

Devices parse_diskstats(std::string_view text) {
    Devices devices;
    for_each_line(text, [&](std::istringstream words) {
        std::string major, minor, name;
        if (!(words >> major >> minor >> name) || is_ram_disk(name)) return;
        // Columns: reads, merged, sectors read, ms, writes, merged, sectors written, ms, requests in flight, busy ms.
        std::array<std::uint64_t, 10> field{};
        for (std::uint64_t& value : field) words >> value;
        devices.emplace(name, DeviceState{field[2] * kSectorBytes, field[6] * kSectorBytes, field[9]});
    });
    std::vector<std::string> names;
    names.reserve(devices.size());
    for (const auto& [name, state] : devices) names.push_back(name);
    std::erase_if(devices, [&](const auto& device) {
        return std::ranges::any_of(names, [&](const auto& disk) { return is_partition_of(device.first, disk); });
    });
    return devices;
}

Counters read_counters() {
    return {parse_stat(read_text("/proc/stat"), static_cast<double>(sysconf(_SC_CLK_TCK))),
            parse_meminfo(read_text("/proc/meminfo")), parse_net_dev(read_text("/proc/net/dev")),
            parse_diskstats(read_text("/proc/diskstats"))};
}

CounterDelta difference(const Counters& before, const Counters& after) {
    CounterDelta delta;
    delta.cpu = {grown(before.cpu.user_s, after.cpu.user_s), grown(before.cpu.system_s, after.cpu.system_s),
                 grown(before.cpu.iowait_s, after.cpu.iowait_s), grown(before.cpu.idle_s, after.cpu.idle_s)};
    delta.memory_available_bytes = after.memory.available_bytes;
    delta.page_cache_before_bytes = before.memory.page_cache_bytes;
    delta.page_cache_after_bytes = after.memory.page_cache_bytes;
    delta.network = {grown(before.network.receive, after.network.receive),
                     grown(before.network.send, after.network.send)};
    for (const auto& [name, state] : after.devices) {
        const auto earlier = before.devices.find(name);
        const DeviceState start = earlier == before.devices.end() ? DeviceState{} : earlier->second;
        if (const auto activity = moved(start, state)) delta.devices.emplace(name, *activity);
    }
    return delta;
}

nlohmann::json to_json(const CounterDelta& delta) {
    nlohmann::json devices = nlohmann::json::object();
    for (const auto& [name, state] : delta.devices) {
        devices[name] = {{"read_bytes", state.read_bytes},
                         {"write_bytes", state.write_bytes},
                         {"busy_s", static_cast<double>(state.busy_ms) / 1e3}};
    }
    return {{"cpu_user_s", delta.cpu.user_s},
            {"cpu_system_s", delta.cpu.system_s},
            {"cpu_iowait_s", delta.cpu.iowait_s},
            {"cpu_idle_s", delta.cpu.idle_s},
            {"memory_available_bytes", delta.memory_available_bytes},
            {"page_cache_before_bytes", delta.page_cache_before_bytes},
            {"page_cache_after_bytes", delta.page_cache_after_bytes},
            {"network_receive_bytes", delta.network.receive},
            {"network_send_bytes", delta.network.send},
            {"devices", std::move(devices)}};
}

}  // namespace strakes
