// What several tests need: directories that go away, plans in short, a session run to its end, one phase run by hand.
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
#include "team/thread_exchange.hpp"
#include "workload/workload.hpp"

namespace strakes::tests {

using Json = nlohmann::json;

// A new directory, with the marker the engine asks for; removed with all that is in it.
class TestDirectory {
  public:
    TestDirectory();
    ~TestDirectory();
    TestDirectory(const TestDirectory&) = delete;
    TestDirectory& operator=(const TestDirectory&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
    // Names in it, the marker left out.
    [[nodiscard]] std::vector<std::string> entries() const;

  private:
    std::filesystem::path path_;
};

// All of a file at once: a stream iterator takes a call for every byte, which sanitizers make slow.
std::string text_of(const std::filesystem::path& path);

// A tmpfs on a directory, with the marker. Not there where this user may not mount.
class Mount {
  public:
    Mount(std::filesystem::path on, const std::string& options);
    // The same for another directory that is to be seen there.
    struct Shown {
        std::filesystem::path directory;
    };
    Mount(std::filesystem::path on, const Shown& shown);
    ~Mount();
    Mount(const Mount&) = delete;
    Mount& operator=(const Mount&) = delete;

    // Says so in the test's output when it is not.
    [[nodiscard]] bool is_there() const;

  private:
    std::filesystem::path on_;
    bool there_;
};

// Phases with the required keys; `more` adds to them or replaces them.
Json transfer(std::string_view name, std::string_view operation, const Json& more = Json::object());
Json metadata(std::string_view name, std::string_view operation, const Json& more = Json::object());
Json plan_of(const std::vector<Json>& phases, int ranks = 2);
Json plan_message(const std::filesystem::path& directory, const Json& plan, const Json& more = Json::object());

struct Answers {
    int exit_status = 0;
    std::vector<Json> messages;

    [[nodiscard]] std::vector<Json> of_type(std::string_view type) const;
    // The last message of that type; fails the test when there is none.
    [[nodiscard]] Json last(std::string_view type) const;
    // Of the phase with this name.
    [[nodiscard]] Json sample(std::string_view name) const;
};

// A session that gets these lines and the end of input.
Answers run_session(const std::vector<std::string>& lines);
Answers run_session(const Json& message);
// A session that gets a line, and another one when so many milliseconds have passed.
Answers run_session(const Json& first, int milliseconds, const Json& second);

// Runs the phases of a plan step by step in this thread, rank after rank, so that a test can look and meddle in
// between.
class Stage {
  public:
    explicit Stage(const Json& plan);

    // One phase on all ranks; the results by rank. The first failure before the timed section ends it.
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

}  // namespace strakes::tests
