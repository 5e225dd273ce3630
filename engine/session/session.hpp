// Session: reads requests from standard input, runs one plan at a time, and handles signals and time limits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "crew/crew.hpp"
#include "protocol/report.hpp"
#include "protocol/requests.hpp"
#include "session/plan_run.hpp"

namespace strakes {

class LineBuffer {
  public:
    // Maximum length of a line in bytes. next() returns kTooLong for a longer line and discards its contents.
    static constexpr std::size_t kMostCharacters = std::size_t{4} << 20U;

    static constexpr std::string_view kTooLong = "\x01";

    void add(std::string_view text) { text_.append(text); }
    // Mark the end of input. The last line needs no newline.
    void end() {
        if (skipping_ || (!text_.empty() && text_.back() != '\n')) text_.push_back('\n');
    }
    std::optional<std::string> next() {
        const std::size_t end = text_.find('\n');
        if (end == std::string::npos) {
            if (text_.size() > kMostCharacters) {
                text_.clear();
                skipping_ = true;
            }
            return std::nullopt;
        }
        std::string line(skipping_ || end > kMostCharacters ? kTooLong : std::string_view(text_).substr(0, end));
        skipping_ = false;
        text_.erase(0, end + 1);
        return line;
    }

  private:
    std::string text_;
    bool skipping_ = false;
};

// `error`: of poll(), such as EINVAL if the limit of open files is below the number of descriptors.
struct Events {
    bool signalled = false, readable = false, unheard = false;
    int error = 0;
};
// Wait for a signal, news of this process, a message for the crew or input, or until nobody reads the output. Reads the
// signal and the news. Pauses after an error, because errors may last. Descriptors may be -1.
Events wait_for_events(int signals, int news, int crew, int input, int output, int limit_ms);

class Session {
  public:
    // `signals` is a signalfd for the signals that end the session. `news` is an eventfd that other threads of this
    // process write to.
    Session(int input, int signals, int news, Output& output, Crew& crew)
        : input_(input), signals_(signals), news_(news), output_(output), crew_(crew) {}

    // Run until the input ends or a signal arrives, and all files are removed. Return the exit status.
    int run();

  private:
    using Time = std::chrono::steady_clock;

    void read_input();
    void take(Request request);
    void begin_next();
    void refuse(const RefusedRequest& request);
    void cancel(const std::string& id);
    void leave();
    void attend_crew();
    void watch();
    [[noreturn]] void abandon();
    void finish_plan();
    [[nodiscard]] Time::duration progress_every() const;
    [[nodiscard]] int milliseconds_to_next_look() const;
    void wait();

    int input_, signals_, news_;
    Output& output_;
    Crew& crew_;
    LineBuffer lines_;
    bool input_open_ = true;
    bool leaving_ = false;
    bool signalled_ = false;
    std::optional<PlanStatus> last_;

    std::deque<Request> waiting_;
    std::unique_ptr<PlanRun> plan_;
    Time::time_point limit_;
    Time::time_point next_progress_;
    Time::time_point next_crew_heartbeat_;
    bool over_limit_ = false;
    bool cancelled_ = false;
    std::uint64_t heartbeat_ = 0;
    Time::time_point last_heartbeat_;
};

}  // namespace strakes
