// Helpers for several tests: temporary directories, short plans, complete sessions, and single phases.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "system/descriptor.hpp"
#include "team/threads.hpp"
#include "workload/workload.hpp"

namespace strakes::tests {

using Json = nlohmann::json;

// A new directory with the engine's marker. The destructor removes it and its contents.
class TestDirectory {
  public:
    TestDirectory();
    ~TestDirectory();
    TestDirectory(const TestDirectory&) = delete;
    TestDirectory& operator=(const TestDirectory&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    // Names of the directory's entries except the marker.
    [[nodiscard]] std::vector<std::string> entries() const;

  private:
    std::filesystem::path path_;
};

// Read a whole file at once. A stream iterator calls a function per byte, which is slow under sanitizers.
std::string text_of(const std::filesystem::path& path);

// A tmpfs with the marker, mounted on a directory. is_there() is false if this user may not mount.
class Mount {
  public:
    Mount(std::filesystem::path on, const std::string& options);
    // A bind mount of another directory.
    struct Shown {
        std::filesystem::path directory;
    };
    Mount(std::filesystem::path on, const Shown& shown);
    ~Mount();
    Mount(const Mount&) = delete;
    Mount& operator=(const Mount&) = delete;

    // Whether the mount succeeded. Otherwise writes a message to the test's output.
    [[nodiscard]] bool is_there() const;

  private:
    std::filesystem::path on_;
    bool there_;
};

// Phases with the required keys; `more` adds to them or replaces them.
Json transfer(std::string_view name, std::string_view operation, const Json& more = Json::object());
Json metadata(std::string_view name, std::string_view operation, const Json& more = Json::object());
// Return the object with these keys added or replaced.
Json with(Json object, const Json& more);
Json plan_of(const std::vector<Json>& phases, int ranks = 2);
Json plan_message(const std::filesystem::path& directory, const Json& plan, const Json& more = Json::object());

struct Answers {
    int exit_status = 0;
    std::vector<Json> messages;

    [[nodiscard]] std::vector<Json> of_type(std::string_view type) const;
    // Return the last message of that type. The test fails if the messages include no such type.
    [[nodiscard]] Json last(std::string_view type) const;
    // Return the sample of the phase with this name.
    [[nodiscard]] Json sample(std::string_view name) const;
};

// Return the number of calls in a histogram of a sample.
std::uint64_t calls_in(const Json& histogram);

// Run a session on these lines.
Answers run_session(const std::vector<std::string>& lines);
Answers run_session(const Json& message);
Answers run_plan(const std::filesystem::path& directory, int ranks, const std::vector<Json>& phases,
                 const Json& more = Json::object());
// Run a session on two messages, the second sent `milliseconds` after the first.
Answers run_session(const Json& first, int milliseconds, const Json& second);

// Runs the phases of a plan in this thread, rank by rank, so that a test can inspect and change files in between.
class Stage {
  public:
    explicit Stage(const Json& plan);
    Stage(int ranks, const std::vector<Json>& phases) : Stage(plan_of(phases, ranks)) {}

    // Run one phase on all ranks. Return the results by rank. The first failure before the timed section ends the
    // phase.
    std::vector<RankResult> run(std::size_t phase);

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return directory_.path(); }
    std::atomic<Halt> halt{Halt::none};

  private:
    TestDirectory directory_;
    Descriptor root_;
    std::string name_ = "stage";
    Plan plan_;
    PlanState state_;
    ThreadExchange exchange_;
};

// Run a phase that must not fail.
std::vector<RankResult> run_well(Stage& stage, std::size_t phase);
// The results of all ranks.
struct Sum {
    std::uint64_t operations = 0, bytes = 0, verified = 0;
    bool failed = false, out_of_time = false;
};
Sum sum_of(const std::vector<RankResult>& results);
// Return the number of operations of all ranks.
std::uint64_t operations(const std::vector<RankResult>& results);

// Stop after the first operation.
inline const Json kAtOnce = {{"stop", {{"rule", "stonewall"}, {"seconds", 1e-9}}}};

}  // namespace strakes::tests
