// Parses kernel counters and computes their differences.
#include "measure/counters.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <vector>

namespace strakes {

namespace {

// /proc/diskstats counts units of 512 bytes on every device (Documentation/admin-guide/iostats.rst).
constexpr std::uint64_t kSectorBytes = 512;
constexpr std::uint64_t kBusyWrapMs = std::uint64_t{1} << 32U;  // its busy time is a 32-bit counter

// Remove the text before the separator, and the separator, from the front of `text`. Return the text removed.
std::string_view take_until(std::string_view& text, char separator) {
    const std::size_t end = text.find(separator);
    const std::string_view head = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return head;
}

std::string_view take_word(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    const std::string_view word = text.substr(0, text.find_first_of(" \t"));
    text.remove_prefix(word.size());
    return word;
}

std::uint64_t take_number(std::string_view& text) {
    const std::string_view word = take_word(text);
    std::uint64_t value = 0;
    std::from_chars(word.data(), word.data() + word.size(), value);
    return value;
}

template <typename Each>
void for_each_line(std::string_view text, Each&& each) {
    while (!text.empty()) each(take_until(text, '\n'));
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
    for_each_line(text, [&](std::string_view line) {
        if (take_word(line) != "cpu") return;
        // user nice system idle iowait irq softirq
        std::array<double, 7> seconds{};
        for (double& value : seconds) value = static_cast<double>(take_number(line)) / ticks_per_second;
        times = {seconds[0] + seconds[1], seconds[2] + seconds[5] + seconds[6], seconds[4], seconds[3]};
    });
    return times;
}

MemoryState parse_meminfo(std::string_view text) {
    MemoryState memory;
    for_each_line(text, [&](std::string_view line) {
        const std::string_view key = take_until(line, ':');
        if (key == "MemAvailable") memory.available_bytes = take_number(line) * 1024;
        if (key == "Cached") memory.page_cache_bytes = take_number(line) * 1024;
    });
    return memory;
}

NetworkBytes parse_net_dev(std::string_view text) {
    constexpr int kReceiveColumns = 8;
    NetworkBytes bytes;
    for_each_line(text, [&](std::string_view line) {
        if (line.find(':') == std::string_view::npos) return;  // header
        std::string_view name = take_until(line, ':');
        if (take_word(name) == "lo") return;
        bytes.receive += take_number(line);
        for (int i = 1; i < kReceiveColumns; ++i) take_word(line);
        bytes.send += take_number(line);
    });
    return bytes;
}

Devices parse_diskstats(std::string_view text) {
    Devices devices;
    for_each_line(text, [&](std::string_view line) {
        take_word(line);  // major
        take_word(line);  // minor
        const std::string_view name = take_word(line);
        if (name.empty() || is_ram_disk(name)) return;
        // reads, reads merged, sectors read, ms, writes, writes merged, sectors written, ms, in flight, busy ms
        std::array<std::uint64_t, 10> field{};
        for (std::uint64_t& value : field) value = take_number(line);
        devices.emplace(name, DeviceState{field[2] * kSectorBytes, field[6] * kSectorBytes, field[9]});
    });
    std::vector<std::string> names;
    names.reserve(devices.size());
    for (const auto& [name, state] : devices) names.push_back(name);
    std::erase_if(devices, [&](const auto& device) {
        return std::any_of(names.begin(), names.end(),
                           [&](const std::string& disk) { return is_partition_of(device.first, disk); });
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
