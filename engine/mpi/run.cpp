// strakes-engine-mpi: every process is a rank; the first of them reads plans and writes samples.
#include "session/run.hpp"

#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "crew/launched.hpp"
#include "mpi/exchange.hpp"
#include "mpi/post.hpp"
#include "mpi/witness.hpp"
#include "protocol/report.hpp"
#include "session/together.hpp"
#include "system/processors.hpp"

namespace strakes {

namespace {

constexpr int kUsageStatus = 2;
constexpr int kLacks = 3;

std::string library_name() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int size = 0;
    MPI_Get_library_version(text.data(), &size);
    // Some libraries append how they were built, on many lines.
    std::string name(text.data());
    name.resize(std::min({name.size(), name.find('\n'), std::size_t{120}}));
    const auto is_space = [](char one) { return one == ' ' || one == '\t'; };
    std::ranges::replace_if(name, is_space, ' ');
    name.erase(std::ranges::unique(name, [](char a, char b) { return a == ' ' && b == ' '; }).begin(), name.end());
    return name;
}

const char* variable(const char* name) { return std::getenv(name); }  // NOLINT(concurrency-mt-unsafe): set by nobody

// UCX drops an idle connection after some 16 s without an answer, and MPICH crashes at its next use. Lost processes are
// detected by their silence instead, whose limit the user can set.
void let_links_be_away() {
    ::setenv("UCX_TCP_KEEPIDLE", "inf", 0);  // NOLINT(concurrency-mt-unsafe): no thread has begun
}

[[noreturn]] void refuse(const std::string& why) {
    if (speaks_for_all(variable)) std::fprintf(stderr, "strakes-engine-mpi: %s\n", why.c_str());
    // MPI_Finalize() could wait for other processes for ever.
    ::_exit(kLacks);
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
                on_mpi_failure(crew == nullptr ? std::function<void(const std::string&)>()
                                               : [crew](const std::string& words) { crew->fail(words); });
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
    ::signal(SIGUSR1, SIG_IGN);  // Hydra announces the loss of a process with it
    stand_witness();
    let_links_be_away();
    int provided = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        refuse("MPI cannot be initialised");
    if (provided < MPI_THREAD_FUNNELED) refuse("this MPI (" + library_name() + ") allows no threads beside it");
    const int status = join(signals, launched(expected, variable));
    MPI_Finalize();
    return status;
}

}  // namespace strakes
