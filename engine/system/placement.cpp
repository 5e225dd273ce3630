// Sets CPU affinity and memory policy by system calls, so that libnuma is not needed.
#include "system/placement.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <string>

namespace strakes {

namespace {

constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);
constexpr std::size_t kMostNumaNodes = 1024;  // Maximum number of NUMA nodes. No kernel is built for more.
constexpr std::size_t kMostNumbers = 65536;

// Return an empty set of NUMA nodes in the kernel's format. set_mempolicy(2) reads one bit less than its argument says.
std::vector<unsigned long> node_words() { return std::vector<unsigned long>(kMostNumaNodes / kWordBits); }

int set_policy(int policy, const std::vector<unsigned long>& nodes) {
    const unsigned long* words = policy == MPOL_DEFAULT ? nullptr : nodes.data();
    return ::syscall(SYS_set_mempolicy, policy, words, kMostNumaNodes + 1) == 0 ? 0 : errno;
}

int get_policy(int& policy, std::vector<unsigned long>& nodes) {
    nodes = node_words();
    return ::syscall(SYS_get_mempolicy, &policy, nodes.data(), kMostNumaNodes, nullptr, 0) == 0 ? 0 : errno;
}

// Prefer the node, but do not bind to it: if the node's memory is full, a slow rank is better than a killed rank.
int prefer(std::uint32_t node) {
    if (node >= kMostNumaNodes) return EINVAL;
    std::vector<unsigned long> nodes = node_words();
    nodes[node / kWordBits] = 1UL << (node % kWordBits);
    return set_policy(MPOL_PREFERRED, nodes);
}

std::optional<std::uint32_t> number_at(std::string_view& text) {
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

bool takes(std::string_view& text, char wanted) {
    if (!text.starts_with(wanted)) return false;
    text.remove_prefix(1);
    return true;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> numbers_in(std::string_view list, std::uint32_t most) {
    std::vector<std::uint32_t> numbers;
    do {
        const auto first = number_at(list);
        const auto last = first && takes(list, '-') ? number_at(list) : first;
        if (!first || !last || *first > *last || *last >= most) return std::nullopt;
        if (*last - *first >= kMostNumbers - numbers.size()) return std::nullopt;
        for (std::uint32_t number = *first; number <= *last; ++number) numbers.push_back(number);
    } while (takes(list, ','));
    return list.empty() ? std::optional(std::move(numbers)) : std::nullopt;
}

Processors processors_of_numa_node(std::uint32_t node) {
    std::string list;
    std::getline(std::ifstream("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist"), list);
    const auto numbers = numbers_in(list, Processors::most());
    if (!numbers) return {};
    // sched_setaffinity(2) ignores processors that this process is not allowed to use.
    const Processors before = Processors::allowed();
    if (!Processors::of(*numbers).keep_to()) return {};
    Processors there = Processors::allowed();
    before.keep_to();
    return there;
}

Processors Placement::processors_of(std::size_t place) const {
    if (!numa_nodes.empty()) return processors_of_numa_node(numa_nodes[place % numa_nodes.size()]);
    if (processors.empty()) return {};
    return Processors::of(std::span(&processors[place % processors.size()], 1));
}

bool Placement::crowds(std::size_t ranks) const {
    if (processors.empty() && numa_nodes.empty()) return false;
    const auto& list = processors.empty() ? numa_nodes : processors;
    std::map<std::uint32_t, std::size_t> on;
    for (std::size_t place = 0; place < ranks; ++place) ++on[list[place % list.size()]];
    return std::ranges::any_of(on, [this](const auto& those) {
        return processors.empty() ? processors_of_numa_node(those.first).too_few_for(those.second) : those.second > 1;
    });
}

Pinned::Taken Pinned::take(const Placement& placement, std::size_t place) {
    if (placement.processors.empty() && placement.numa_nodes.empty()) return {};
    Processors before = Processors::allowed();
    if (!placement.processors_of(place).keep_to()) return {.call = "sched_setaffinity", .error = errno};
    before_ = std::move(before);
    if (placement.numa_nodes.empty()) return {};
    int policy = kNone;
    if (const int error = get_policy(policy, nodes_); error != 0) return {.call = "get_mempolicy", .error = error};
    if (const int error = prefer(placement.numa_nodes[place % placement.numa_nodes.size()]); error != 0)
        return {.call = "set_mempolicy", .error = error};
    policy_ = policy;
    return {};
}

Pinned::~Pinned() {
    if (before_.count() > 0) before_.keep_to();
    if (policy_ != kNone) set_policy(policy_, nodes_);
}

int memory_error(std::uint32_t node) {
    int policy = 0;
    std::vector<unsigned long> nodes;
    if (const int error = get_policy(policy, nodes); error != 0) return error;
    const int error = prefer(node);
    if (error == 0) set_policy(policy, nodes);
    return error;
}

}  // namespace strakes
