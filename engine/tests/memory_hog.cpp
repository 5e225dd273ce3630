// Memory that a plan holds is really allocated, then freed, and refused if it is not available.
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "support.hpp"

using namespace strakes::tests;

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
