// strakes-engine: the ranks are threads of one process.
#include "session/run.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>

#include "backend/registry.hpp"
#include "crew/crew.hpp"
#include "measure/clock.hpp"
#include "protocol/report.hpp"
#include "session/session.hpp"
#include "system/descriptor.hpp"

namespace strakes {

Absence absence_of_library(Backend /*backend*/) {
    return {"it needs ranks that are processes, but the ranks of this engine are threads",
            "Start the ranks as processes: --launcher mpi."};
}

std::string_view engine_usage() {
    return "usage: strakes-engine [--version | --remove-objects PREFIX]\n"
           "Reads plans on standard input, one JSON message per line, and writes samples on standard output\n"
           "(docs/reference/engine.md).\n";
}

int run_engine(int signals, std::span<const std::string_view> arguments) {
    if (!arguments.empty()) {
        constexpr int kUsageStatus = 2;
        std::fwrite(engine_usage().data(), 1, engine_usage().size(), stderr);
        return kUsageStatus;
    }
    const Descriptor news(::eventfd(0, EFD_CLOEXEC));
    Output output(STDOUT_FILENO);
    say_hello(output, {.engine = STRAKES_VERSION, .clock = Clock::system().name(), .together = {}});
    ThreadCrew crew;
    return Session(STDIN_FILENO, signals, news.get(), output, crew).run();
}

}  // namespace strakes
