// Forks the rank and waits for it.
#include "mpi/witness.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>

#include "system/queries.hpp"

namespace strakes {

namespace {

constexpr int kSignalled = 128;  // exit status of shells: plus the number of the signal

sigset_t signals_to_see() {
    sigset_t signals;
    ::sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&signals, signal);
    return signals;
}

// Delays the exit: when a rank ends, launchers end all ranks and lose the output that they write at that moment.
void let_the_others_speak() {
    constexpr timespec kWhile{0, 500'000'000};
    ::nanosleep(&kWhile, nullptr);
}

[[noreturn]] void watch(pid_t child, const sigset_t& signals) {
    for (;;) {
        const int signal = ::sigwaitinfo(&signals, nullptr);
        if (signal > 0 && signal != SIGCHLD) ::kill(child, signal);
        int status = 0;
        if (::waitpid(child, &status, WNOHANG) != child) continue;
        if (status == 0) ::_exit(0);
        if (WIFSIGNALED(status))
            std::fprintf(stderr, "strakes-engine-mpi: PID %d RUNNING AT %s was ended by signal %d\n", child,
                         host_name().c_str(), WTERMSIG(status));
        let_the_others_speak();
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status));
    }
}

}  // namespace

void stand_witness() {
    ::signal(SIGCHLD, SIG_DFL);  // if SIGCHLD is ignored, a child leaves no exit status
    const sigset_t signals = signals_to_see();
    sigset_t before;
    ::sigprocmask(SIG_BLOCK, &signals, &before);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child > 0) watch(child, signals);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
}

}  // namespace strakes
