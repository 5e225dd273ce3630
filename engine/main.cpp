// strakes-engine and strakes-engine-mpi: read plans on standard input and write samples on standard output
// (docs/reference/engine.md).
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "session/run.hpp"
#include "system/descriptor.hpp"

namespace {

// Blocks the signals that end the session, also in later threads. Returns a signalfd that receives these signals.
strakes::Descriptor take_signals() {
    ::signal(SIGPIPE, SIG_IGN);  // write() then fails with EPIPE
    ::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on file size then fails with EFBIG
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    return strakes::Descriptor(::signalfd(-1, &signals, SFD_CLOEXEC));
}

// Raises the limit of open files to its maximum, because a rank keeps the directories of its tree open.
void allow_many_descriptors() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int count, char** words) {
    const std::vector<std::string_view> arguments(words + std::min(count, 1), words + count);
    if (arguments.size() == 1 && arguments.front() == "--help") {
        std::fwrite(strakes::engine_usage().data(), 1, strakes::engine_usage().size(), stdout);
        return 0;
    }
    if (arguments.size() == 1 && arguments.front() == "--version") {
        std::puts(STRAKES_VERSION);
        return 0;
    }
    if (arguments.size() == 2 && arguments.front() == "--remove-objects")
        return strakes::remove_objects(std::string(arguments.back()));
    const strakes::Descriptor signals = take_signals();
    allow_many_descriptors();
    return strakes::run_engine(signals.get(), arguments);
}
