// strakes-engine and strakes-engine-mpi: plans in on standard input, samples out on standard output
// (docs/reference/engine.md).
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "session/run.hpp"
#include "system/descriptor.hpp"

namespace {

constexpr std::string_view kUsage =
    "usage: strakes-engine [--version]\n"
    "Reads plans on standard input, one JSON message a line, and writes samples on standard output\n"
    "(docs/reference/engine.md).\n";

// Blocked in all threads, since those that come later inherit it; read from the descriptor.
strakes::Descriptor take_signals() {
    ::signal(SIGPIPE, SIG_IGN);  // a broken output is seen where it is written
    ::signal(SIGXFSZ, SIG_IGN);  // the call then fails with EFBIG
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    return strakes::Descriptor(::signalfd(-1, &signals, SFD_CLOEXEC));
}

// A rank keeps the directories of its tree open.
void allow_many_descriptors() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view option = count > 1 ? arguments[1] : "";
    if (option == "--version" || option == "--help") {
        if (option == "--help")
            std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
        else
            std::puts(STRAKES_VERSION);
        return 0;
    }
    if (count > 1) {
        std::fwrite(kUsage.data(), 1, kUsage.size(), stderr);
        return 2;
    }
    const strakes::Descriptor signals = take_signals();
    allow_many_descriptors();
    return strakes::run_engine(signals.get());
}
