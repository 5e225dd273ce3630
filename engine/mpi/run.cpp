// strakes-engine-mpi: every process is a rank; the first process reads plans and writes samples.
#include "session/run.hpp"

#include <mpi.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "crew/launched.hpp"
#include "mpi/post.hpp"
#include "protocol/report.hpp"
#include "session/together.hpp"
#include "system/processors.hpp"
#include "system/queries.hpp"

namespace strakes {

namespace {

constexpr int kUsageStatus = 2;
constexpr int kLacks = 3;

std::string library_name() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int size = 0;
    MPI_Get_library_version(text.data(), &size);
    // Take the first line only: some libraries append many lines about their build.
    std::string name(text.data());
    name.resize(std::min({name.size(), name.find('\n'), std::size_t{120}}));
    const auto is_space = [](char one) { return one == ' ' || one == '\t'; };
    std::ranges::replace_if(name, is_space, ' ');
    name.erase(std::ranges::unique(name, [](char a, char b) { return a == ' ' && b == ' '; }).begin(), name.end());
    return name;
}

const char* variable(const char* name) { return std::getenv(name); }  // NOLINT(concurrency-mt-unsafe): set by nobody

// Sets options of UCX and Open MPI that the user has not set.
void choose_transports() {
    const auto choose = [](const char* name, const char* value) {
        ::setenv(name, value, 0);  // NOLINT(concurrency-mt-unsafe): no thread has begun
    };
    // By default, Open MPI opens files of names that other users know. shm_open() makes names secret
    // (shared_names.cpp).
    choose("OMPI_MCA_shmem", "posix");
    // UCX drops an idle connection after some 16 s without an answer; MPICH crashes when it uses the connection again.
    // Lost processes are detected by their silence, whose limit the user can set.
    if (!all_on_this_node(variable)) return choose("UCX_TCP_KEEPIDLE", "inf");
    // By default, UCX and Open MPI listen on TCP ports, and UCX ends a rank that receives foreign bytes there.
    choose("UCX_TLS", "self,sm");
    choose("OMPI_MCA_pml", "ob1");
    choose("OMPI_MCA_btl", "self,vader");
}

[[noreturn]] void refuse(const std::string& why) {
    if (speaks_for_all(variable)) std::fprintf(stderr, "strakes-engine-mpi: %s\n", why.c_str());
    // MPI_Finalize() is not called, because it could wait for other processes for ever.
    ::_exit(kLacks);
}

constexpr int kSignalled = 128;  // exit status as in shells: 128 plus the signal number

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
        // When a rank ends, launchers end all ranks and lose the output that ranks write at that moment.
        constexpr timespec kWhile{0, 500'000'000};
        ::nanosleep(&kWhile, nullptr);
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status));
    }
}

// Fork before MPI is initialised, while the process has one thread, and return in the child. The parent passes signals
// on, reports on standard error which signal ended the child, and exits with the child's status. Launchers end all
// processes after the first loss, and may name any process as the cause.
void stand_witness() {
    ::signal(SIGCHLD, SIG_DFL);  // if SIGCHLD is ignored, a child leaves no exit status
    sigset_t signals, before;
    ::sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&signals, signal);
    ::sigprocmask(SIG_BLOCK, &signals, &before);
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child > 0) watch(child, signals);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
}

int join(int signals, const Launched& launched) {
    MpiPost post;
    const std::string library = library_name();
    if (const auto mismatch = size_mismatch(launched, post.size(), library, variable)) refuse(*mismatch);
    Output output(STDOUT_FILENO);
    const int status = run_together({
        .post = post,
        .introduction = Crowd::introduction(),
        .version = STRAKES_VERSION,
        .library = library,
        .tasks = launched.tasks,
        .input = STDIN_FILENO,
        .signals = signals,
        .output = output,
        .gone_after = chosen_silence(variable("STRAKES_SILENCE_S")),
        .when_known =
            [&post](const Crowd& crowd) {
                std::vector<Post::Rank> ranks(post.size());
                std::iota(ranks.begin(), ranks.end(), 0);
                const Crowd::Share share = crowd.share_of(post.rank(), ranks);
                post.set_crowding(share.ranks.size() / std::max<std::size_t>(share.processors.count(), 1));
            },
        .with_crew =
            [](ProcessCrew* crew) {
                told_of_mpi_failure() = nullptr;
                if (crew != nullptr) told_of_mpi_failure() = [crew](const std::string& words) { crew->fail(words); };
            },
        .before_plans =
            [] {
                take_own_table();
                // The kernel would otherwise prolong the short sleeps of Patience by up to 50 us.
                ::prctl(PR_SET_TIMERSLACK, 1UL);
            },
    });
    post.close();
    return status;
}

}  // namespace

std::string_view engine_usage() {
    return "usage: strakes-engine-mpi [--version] [--mpi] [--expect-ranks N]\n"
           "Started by mpiexec or srun. Its first process reads plans on standard input, one JSON message a line, and\n"
           "writes samples on standard output (docs/reference/engine.md). It refuses to run when MPI joins another\n"
           "number of processes than the launcher started, or than N. --mpi says which MPI it is built with.\n";
}

int run_engine(int signals, std::span<const std::string_view> arguments) {
    if (arguments.size() == 1 && arguments[0] == "--mpi") {
        std::puts(library_name().c_str());
        return 0;
    }
    std::optional<std::uint32_t> expected;
    if (arguments.size() == 2 && arguments[0] == "--expect-ranks") expected = count_from(arguments[1]);
    if (!arguments.empty() && !expected) {
        std::fwrite(engine_usage().data(), 1, engine_usage().size(), stderr);
        return kUsageStatus;
    }
    ::signal(SIGUSR1, SIG_IGN);  // Hydra sends this signal to announce the loss of a process.
    stand_witness();
    choose_transports();
    int provided = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        refuse("MPI cannot be initialised");
    if (provided < MPI_THREAD_FUNNELED) refuse("this MPI (" + library_name() + ") allows no threads beside it");
    const int status = join(signals, launched(expected, variable));
    MPI_Finalize();
    return status;
}

}  // namespace strakes
