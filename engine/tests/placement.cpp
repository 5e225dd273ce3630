// Placement of ranks on processors and NUMA nodes, the pages of their buffers, and memory that a plan holds.
#include "system/placement.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>

#include "support.hpp"

using namespace strakes;
using namespace strakes::tests;

namespace {

using NumberList = std::vector<std::uint32_t>;

// NumberList of the processors that this process may use.
NumberList processors_here() {
    NumberList numbers;
    const Processors allowed = Processors::allowed();
    for (std::uint32_t number = 0; number < Processors::most(); ++number)
        if (allowed.has_all(Processors::of({&number, 1}))) numbers.push_back(number);
    return numbers;
}

// Return a value in bytes from /proc/self/smaps, for the mapping that contains this address.
std::uint64_t kept_as(const std::byte* address, const std::string& key) {
    std::ifstream lines("/proc/self/smaps");
    bool here = false;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        if (name.find('-') != std::string::npos && name.find(':') == std::string::npos) {
            const std::uint64_t first = std::stoull(name, nullptr, 16);
            const std::uint64_t last = std::stoull(name.substr(name.find('-') + 1), nullptr, 16);
            const auto wanted = reinterpret_cast<std::uintptr_t>(address);
            here = first <= wanted && wanted < last;
        } else if (here && name == key + ":") {
            std::uint64_t kib = 0;
            words >> kib;
            return kib * 1024;
        }
    }
    return 0;
}

Json plan_on(const Json& team, int ranks = 2) {
    Json plan = plan_of(
        {transfer("write", "write"), transfer("read", "read", {{"verify", true}}), metadata("create", "file-create")},
        ranks);
    plan["team"].update(team);
    return plan;
}

Json fault_of(const Json& team) {
    const TestDirectory directory;
    const Answers answers = run_session(plan_message(directory.path(), plan_on(team)));
    CHECK(answers.exit_status == 2);
    CHECK(answers.last("done").at("status") == "refused");
    return answers.last("error");
}

}  // namespace

TEST_CASE("lists of numbers have the kernel's format") {
    CHECK(numbers_in("0", 16) == NumberList{0});
    CHECK(numbers_in("3-5,0,4", 16) == NumberList{3, 4, 5, 0, 4});
    for (const char* wrong :
         {"", "a", "1,", ",1", "1-", "-1", "1--2", "5-3", "1 2", "16", "0-16", "99999999999", "1\n"})
        CHECK_FALSE(numbers_in(wrong, 16));
    CHECK_FALSE(
        numbers_in("0-16383,0-16383,0-16383,0-16383,0", Processors::most()));  // more numbers than any team has ranks
}

TEST_CASE("processors are assigned to ranks round-robin, and sharing is detected") {
    const Placement three{.processors = {4, 1, 2}, .numa_nodes = {}};
    CHECK(three.processors_of(1).bytes() == Processors::of(NumberList{1}).bytes());
    CHECK(three.processors_of(3).bytes() == Processors::of(NumberList{4}).bytes());
    CHECK_FALSE(three.crowds(3));
    CHECK(three.crowds(4));
    const Placement twice{.processors = {1, 1}, .numa_nodes = {}};
    CHECK_FALSE(twice.crowds(1));
    CHECK(twice.crowds(2));
    CHECK_FALSE(Placement().crowds(99));
    CHECK(Placement().processors_of(0).count() == 0);
}

TEST_CASE("a thread stays on its processor while it is pinned") {
    const NumberList here = processors_here();
    REQUIRE_FALSE(here.empty());
    const Processors before = Processors::allowed();
    const Placement last{.processors = {here.back()}, .numa_nodes = {}};
    {
        Pinned pinned;
        CHECK(pinned.take(last, 0).error == 0);
        CHECK(Processors::allowed().bytes() == Processors::of(NumberList{here.back()}).bytes());
        CHECK(Processors::current().bytes() == Processors::allowed().bytes());
        Processors inherited;
        std::thread([&inherited] { inherited = Processors::allowed(); }).join();
        CHECK(inherited.bytes() == Processors::allowed().bytes());
    }
    CHECK(Processors::allowed().bytes() == before.bytes());
    const Placement nowhere{.processors = {Processors::most() - 1}, .numa_nodes = {}};
    if (here.back() != Processors::most() - 1) {
        Pinned pinned;
        const Pinned::Taken taken = pinned.take(nowhere, 0);
        CHECK(std::string(taken.call) == "sched_setaffinity");
        CHECK(taken.error == EINVAL);
    }
    CHECK(Processors::allowed().bytes() == before.bytes());
}

TEST_CASE("a thread stays on a NUMA node, and then returns to its former processors") {
    const Processors before = Processors::allowed();
    std::uint32_t node = 0;
    while (node < 64 && processors_of_numa_node(node).count() == 0) ++node;
    if (node == 64 || memory_error(node) != 0) {
        MESSAGE("this kernel has no NUMA nodes, or lets nobody choose memory");
        return;
    }
    CHECK(before.has_all(processors_of_numa_node(node)));
    CHECK(Processors::allowed().bytes() == before.bytes());
    {
        Pinned pinned;
        CHECK(pinned.take({.processors = {}, .numa_nodes = {node}}, 5).error == 0);
        CHECK(Processors::allowed().bytes() == processors_of_numa_node(node).bytes());
        const Buffer buffer = Buffer::of(1 << 20);
        REQUIRE_FALSE(buffer.empty());
    }
    CHECK(Processors::allowed().bytes() == before.bytes());
    CHECK(processors_of_numa_node(1023).count() == 0);
}

TEST_CASE("plans run on chosen processors, and two ranks on one processor are reported as crowded") {
    const NumberList here = processors_here();
    const std::string first = std::to_string(here.front());
    const TestDirectory directory;
    const Answers one = run_session(plan_message(directory.path(), plan_on({{"processors", first}})));
    CHECK(one.exit_status == 0);
    CHECK(one.sample("create")["begun"]["crowded"] == true);
    CHECK(one.sample("read")["effective"]["verified_bytes"] == 2 * 4 * 65536);
    if (here.size() < 2) return;
    const std::string both = first + "," + std::to_string(here.back());
    const Answers two = run_session(plan_message(directory.path(), plan_on({{"processors", both}})));
    CHECK(two.exit_status == 0);
    CHECK(two.sample("create")["begun"]["crowded"] == false);
}

TEST_CASE("processors and NUMA nodes that do not exist are refused and named") {
    const std::uint32_t most = Processors::most() - 1;
    const Json processor = fault_of({{"processors", std::to_string(most)}});
    CHECK(processor.at("where").at("key") == "team.processors");
    CHECK(processor.at("what").get<std::string>().find(std::to_string(most)) != std::string::npos);
    const Json node = fault_of({{"numa_nodes", "1023"}});
    CHECK(node.at("where").at("key") == "team.numa_nodes");
    CHECK(node.at("what").get<std::string>().find("1023") != std::string::npos);
}

TEST_CASE("buffers have the requested pages, or are empty") {
    constexpr std::size_t kSize = 3'000'000;
    const Buffer usual = Buffer::of(kSize);
    REQUIRE_FALSE(usual.empty());
    CHECK(usual.bytes().size() == kSize);
    if (const std::size_t page = page_bytes(Pages::transparent); page > 0) {
        const Buffer large = Buffer::of(kSize, Pages::transparent);
        if (large.empty()) {
            MESSAGE("the kernel has no large pages left");
        } else {
            CHECK(large.bytes().size() == kSize);
            CHECK(reinterpret_cast<std::uintptr_t>(large.bytes().data()) % page == 0);
            CHECK(kept_as(large.bytes().data(), "AnonHugePages") >= in_pages(kSize, page));
        }
    }
    const std::uint64_t page = page_bytes(Pages::huge);
    if (page == 0 || free_huge_pages() < in_pages(kSize, page) / page) {
        CHECK(Buffer::of(kSize, Pages::huge).empty());
        return;
    }
    const Buffer huge = Buffer::of(kSize, Pages::huge);
    REQUIRE_FALSE(huge.empty());
    CHECK(kept_as(huge.bytes().data(), "KernelPageSize") == page);
}

TEST_CASE("huge pages that are not available are refused with a remedy, and available ones are used") {
    if (page_bytes(Pages::huge) == 0 || free_huge_pages() < 2) {
        const Json fault = fault_of({{"buffer_pages", "huge"}});
        CHECK(fault.at("where").at("key") == "team.buffer_pages");
        CHECK(fault.at("remedy").get<std::string>() != "");
        return;
    }
    const TestDirectory directory;
    CHECK(run_session(plan_message(directory.path(), plan_on({{"buffer_pages", "huge"}}))).exit_status == 0);
}

namespace {

// Return the peak resident memory of this process since the last call of forget_peak(), in bytes.
std::uint64_t peak() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        if (word != "VmHWM:") continue;
        std::uint64_t kibibytes = 0;
        status >> kibibytes;
        return kibibytes * 1024;
    }
    return 0;
}
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

Json holding(std::uint64_t bytes) {
    Json plan = plan_of({metadata("create", "file-create", {{"items", 5}})});
    plan["team"]["memory_hog_bytes"] = bytes;
    return plan;
}

}  // namespace

TEST_CASE("a plan holds the memory it asks for, and frees it at its end") {
    constexpr std::uint64_t kHeld = std::uint64_t{96} << 20U;
    const TestDirectory directory;
    forget_peak();
    const std::uint64_t before = peak();
    CHECK(run_session(plan_message(directory.path(), holding(kHeld))).last("done").at("status") == "ok");
    CHECK(peak() >= before + kHeld / 10 * 9);
    forget_peak();
    CHECK(peak() < before + kHeld / 2);
}

TEST_CASE("a plan that asks for more memory than is available is refused") {
    const TestDirectory directory;
    const Answers answers = run_session(plan_message(directory.path(), holding(std::uint64_t{1} << 48U)));
    CHECK(answers.last("done").at("status") == "refused");
    CHECK(answers.last("error").at("where").at("key") == "team.memory_hog_bytes");
    CHECK(directory.entries().empty());
}
