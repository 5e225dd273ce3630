// strakes-engine: one process, its threads are the ranks.
#include "session/run.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include "crew/crew.hpp"
#include "measure/clock.hpp"
#include "protocol/output.hpp"
#include "protocol/report.hpp"
#include "session/session.hpp"
#include "system/descriptor.hpp"

namespace strakes {

int run_engine(int signals) {
    const Descriptor news(::eventfd(0, EFD_CLOEXEC));
    Output output(STDOUT_FILENO);
    say_hello(output, {.engine = STRAKES_VERSION, .clock = Clock::system().name(), .together = {}});
    ThreadCrew crew;
    return Session(STDIN_FILENO, signals, news.get(), output, crew).run();
}

}  // namespace strakes
