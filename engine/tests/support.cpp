// Helpers for several tests.
#include "support.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "crew/crew.hpp"
#include "plan/parse.hpp"
#include "protocol/report.hpp"
#include "session/session.hpp"
#include "workspace/workspace.hpp"

namespace strakes::tests {

namespace fs = std::filesystem;

namespace {

void mark(const fs::path& directory) { std::ofstream(directory / kMarker) << "{}"; }

class Pipe {
  public:
    Pipe() {
        std::array<int, 2> ends{};
        REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
        read_ = Descriptor(ends[0]);
        write_ = Descriptor(ends[1]);
    }
    [[nodiscard]] int reader() const { return read_.get(); }
    void write(const std::string& text) const {
        REQUIRE(::write(write_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    }
    void close() { write_ = Descriptor(); }

  private:
    Descriptor read_, write_;
};

// Run a session on the input. Return the messages that it wrote.
Answers session_on(int input) {
    const Descriptor written(::memfd_create("answers", MFD_CLOEXEC));
    const Descriptor signals([] {
        sigset_t none;
        sigemptyset(&none);
        return ::signalfd(-1, &none, SFD_CLOEXEC);
    }());
    Answers answers;
    {
        Output output(written.get());
        const Descriptor news(::eventfd(0, EFD_CLOEXEC));
        ThreadCrew crew;
        answers.exit_status = Session(input, signals.get(), news.get(), output, crew).run();
    }
    std::string text(static_cast<std::size_t>(::lseek(written.get(), 0, SEEK_END)), '\0');
    REQUIRE(::pread(written.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) answers.messages.push_back(Json::parse(line));
    return answers;
}

}  // namespace

TestDirectory::TestDirectory() {
    std::string pattern = (fs::temp_directory_path() / "strakes-test-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
    mark(path_);
}

TestDirectory::~TestDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

std::vector<std::string> TestDirectory::entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_))
        if (entry.path().filename() != kMarker) names.push_back(entry.path().filename().string());
    return names;
}

std::string text_of(const fs::path& path) {
    std::string text(fs::file_size(path), '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    REQUIRE(static_cast<std::size_t>(file.gcount()) == text.size());
    return text;
}

Mount::Mount(fs::path on, const std::string& options)
    : on_(std::move(on)), there_(::mount("none", on_.c_str(), "tmpfs", 0, options.c_str()) == 0) {
    if (there_) mark(on_);
}

Mount::Mount(fs::path on, const Shown& shown)
    : on_(std::move(on)), there_(::mount(shown.directory.c_str(), on_.c_str(), nullptr, MS_BIND, nullptr) == 0) {}

Mount::~Mount() {
    if (there_) ::umount2(on_.c_str(), MNT_DETACH);
}

bool Mount::is_there() const {
    if (!there_) MESSAGE("not run: mounting needs root");
    return there_;
}

Json transfer(std::string_view name, std::string_view operation, const Json& more) {
    Json phase = {{"kind", "transfer"},           {"name", name},          {"operation", operation},
                  {"layout", "file-per-process"}, {"access", "segmented"}, {"transfer_bytes", 4096},
                  {"block_bytes", 65536},         {"segments", 4}};
    phase.update(more);
    return phase;
}

Json metadata(std::string_view name, std::string_view operation, const Json& more) {
    Json phase = {
        {"kind", "metadata"}, {"name", name}, {"operation", operation}, {"directory", "unique"}, {"items", 100}};
    phase.update(more);
    return phase;
}

Json plan_of(const std::vector<Json>& phases, int ranks) {
    return {{"schema", 1}, {"seed", 7}, {"team", {{"ranks", ranks}}}, {"phases", phases}};
}

Json plan_message(const fs::path& directory, const Json& plan, const Json& more) {
    Json message = {{"type", "plan"}, {"version", 1}, {"id", "p"}, {"directory", directory.string()},
                    {"plan", plan},   {"limit_s", 60}};
    message.update(more);
    return message;
}

std::vector<Json> Answers::of_type(std::string_view type) const {
    std::vector<Json> found;
    for (const Json& message : messages)
        if (message.at("type") == type) found.push_back(message);
    return found;
}

Json Answers::last(std::string_view type) const {
    const std::vector<Json> found = of_type(type);
    REQUIRE_MESSAGE(!found.empty(), "no message of type ", std::string(type));
    return found.back();
}

Json Answers::sample(std::string_view name) const {
    for (const Json& message : of_type("sample"))
        if (message.at("name") == name) return message;
    FAIL("no sample of phase ", std::string(name));
    return {};
}

Answers run_session(const std::vector<std::string>& lines) {
    Pipe input;
    for (const std::string& line : lines) input.write(line + "\n");
    input.close();
    return session_on(input.reader());
}

Answers run_session(const Json& message) { return run_session(std::vector{message.dump()}); }

Answers run_session(const Json& first, int milliseconds, const Json& second) {
    Pipe input;
    input.write(first.dump() + "\n");
    std::jthread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        input.write(second.dump() + "\n");
        input.close();
    });
    return session_on(input.reader());
}

Answers run_plan(const fs::path& directory, int ranks, const std::vector<Json>& phases, const Json& more) {
    return run_session(plan_message(directory, plan_of(phases, ranks), more));
}

Stage::Stage(const Json& plan)
    : root_(::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY)),
      plan_(parse_plan(plan)),
      state_(plan_),
      exchange_(plan_.ranks, plan_.ranks) {}

std::vector<RankResult> Stage::run(std::size_t phase) {
    const PhaseSetting setting{plan_, phase, state_, root_.get(), name_, Clock::system(), halt};
    const std::size_t ranks = plan_.ranks;
    const auto progress = std::make_unique<Progress[]>(ranks);
    const auto latencies = std::make_unique<Latencies[]>(ranks);
    std::vector<RankResult> results(ranks);
    std::vector<std::unique_ptr<Workload>> workloads;
    workloads.reserve(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        workloads.push_back(make_workload(setting, {.rank = static_cast<std::uint32_t>(rank),
                                                    .progress = progress[rank],
                                                    .latencies = latencies[rank],
                                                    .exchange = &exchange_.of(static_cast<std::uint32_t>(rank))}));
    }
    results[0].failure = workloads[0]->lead();
    if (!results[0].failure) workloads[0]->declare();
    for (std::size_t rank = 0; rank < ranks && !results[0].failure; ++rank)
        results[0].failure = workloads[rank]->prepare(results[rank]);
    if (results[0].failure) return results;
    for (std::size_t rank = 0; rank < ranks; ++rank) workloads[rank]->run(results[rank]);
    for (std::size_t rank = 0; rank < ranks; ++rank) workloads[rank]->finish(results[rank]);
    return results;
}

std::vector<RankResult> run_well(Stage& stage, std::size_t phase) {
    auto results = stage.run(phase);
    CHECK_FALSE(sum_of(results).failed);
    return results;
}

Sum sum_of(const std::vector<RankResult>& results) {
    Sum sum;
    for (const RankResult& result : results) {
        if (result.failure) MESSAGE(result.failure->what, " ", result.failure->path, " ", result.failure->why);
        sum.operations += result.operations;
        sum.bytes += result.bytes;
        sum.verified += result.verified_bytes;
        sum.failed |= result.failure.has_value();
        sum.out_of_time |= result.out_of_time;
    }
    return sum;
}

std::uint64_t operations(const std::vector<RankResult>& results) { return sum_of(results).operations; }

std::uint64_t calls_in(const Json& histogram) {
    std::uint64_t calls = 0;
    for (const Json& bucket : histogram.at("buckets")) calls += bucket.at(1).get<std::uint64_t>();
    return calls;
}

Json with(Json object, const Json& more) {
    object.update(more);
    return object;
}

}  // namespace strakes::tests
