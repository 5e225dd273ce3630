// strakes-engine-mpi: every process is a rank; the first of them reads plans and writes samples.
#include "session/run.hpp"

#include <mpi.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "crew/launched.hpp"
#include "crew/process_crew.hpp"
#include "crew/wire.hpp"
#include "measure/clock.hpp"
#include "mpi/patience.hpp"
#include "mpi/post.hpp"
#include "mpi/witness.hpp"
#include "protocol/output.hpp"
#include "protocol/report.hpp"
#include "session/follower.hpp"
#include "session/session.hpp"
#include "system/descriptor.hpp"
#include "system/host.hpp"

namespace strakes {

namespace {

constexpr int kUsageStatus = 2;
constexpr int kLacks = 3;

std::string library_name() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int size = 0;
    MPI_Get_library_version(text.data(), &size);
    // Some say how they were built, on many lines.
    std::string name(text.data());
    name.resize(std::min({name.size(), name.find('\n'), std::size_t{120}}));
    const auto is_space = [](char one) { return one == ' ' || one == '\t'; };
    std::ranges::replace_if(name, is_space, ' ');
    name.erase(std::ranges::unique(name, [](char a, char b) { return a == ' ' && b == ' '; }).begin(), name.end());
    return name;
}

const char* variable(const char* name) { return std::getenv(name); }  // NOLINT(concurrency-mt-unsafe): set by nobody

[[noreturn]] void refuse(const std::string& why) {
    if (speaks_for_all(variable)) std::fprintf(stderr, "strakes-engine-mpi: %s\n", why.c_str());
    // Those that were joined after all would wait for the others for ever.
    ::_exit(kLacks);
}

// A connection of every process to the first one, or the end of all: then the first says why.
std::vector<Descriptor> connect_all(const World& world) {
    Circle everybody = world.everybody();
    const auto rank = world.post.rank();
    std::optional<Switchboard> switchboard;
    if (rank == 0) switchboard.emplace(world.post.size(), world.crowd.nodes().size() == 1);
    const std::string where = everybody.from_first(switchboard ? switchboard->where() : "");
    Connected connected;
    if (switchboard)
        connected.why = switchboard->why();
    else if (!where.empty())
        connected = connect_to(where, world.crowd.leader_of(rank) == 0, rank);
    std::string mine = connected.why.empty() ? ""
                                             : "rank " + std::to_string(rank) + " on " + host_name() +
                                                   " cannot be reached from rank 0: " + connected.why;
    for (const std::string& why : everybody.all(mine)) {
        if (why.empty()) continue;
        if (rank == 0)
            std::fprintf(stderr, "strakes-engine-mpi: %s. The nodes must reach each other by TCP.\n", why.c_str());
        ::_exit(kLacks);
    }
    std::vector<Descriptor> connections;
    if (switchboard)
        connections = switchboard->take();
    else
        connections.push_back(std::move(connected.descriptor));
    return connections;
}

// As the site's links need it; else the usual time.
std::chrono::milliseconds gone_after() {
    constexpr std::uint32_t kLeast = 3, kMost = 3600;
    const char* chosen = variable("STRAKES_SILENCE_S");
    const auto seconds = chosen != nullptr ? count_from(chosen) : std::nullopt;
    if (!seconds) return LeadingCrew::kGoneAfter;
    return std::chrono::seconds(std::clamp(*seconds, kLeast, kMost));
}

int lead(World& world, int signals, int news, Output& output, std::vector<Descriptor> connections) {
    LeadingCrew crew(world, news, std::move(connections), gone_after());
    on_mpi_failure([&crew](const std::string& words) { crew.fail(words); });
    const int status = Session(STDIN_FILENO, signals, news, output, crew).run();
    crew.dismiss();
    return status;
}

int follow(World& world, int signals, int news, Output& output, std::vector<Descriptor> connections) {
    FollowingCrew crew(world, news, std::move(connections.front()));
    on_mpi_failure([&crew](const std::string& words) { crew.fail(words); });
    return Follower(signals, news, output, crew, world.post.rank() == 1).run();
}

int run_together(int signals, const Launched& launched) {
    MpiPost post;
    const std::string library = library_name();
    if (const auto mismatch = size_mismatch(launched, post.size(), library, variable)) refuse(*mismatch);
    std::vector<Post::Rank> ranks(post.size());
    for (Post::Rank rank = 0; rank < post.size(); ++rank) ranks[rank] = rank;
    const Crowd crowd(Circle(post, ranks, post.rank()).all(Crowd::introduction()));
    const Crowd::Share share = crowd.share_of(post.rank(), ranks);
    post.set_crowding(share.ranks.size() / std::max<std::size_t>(share.processors.count(), 1));
    Clocks clocks(post, crowd);
    Performer performer;
    World world{.performer = performer, .post = post, .crowd = crowd, .clocks = clocks};
    auto connections = connect_all(world);
    const std::uint64_t uncertainty_ns = world.everybody().most(clocks.uncertainty_ns());
    const Descriptor news(::eventfd(0, EFD_CLOEXEC));
    Output output(STDOUT_FILENO);
    if (post.rank() == 0) {
        say_hello(output, {.engine = STRAKES_VERSION,
                           .clock = Clock::system().name(),
                           .together = Together{.library = library,
                                                .size = post.size(),
                                                .tasks = launched.tasks,
                                                .nodes = crowd.nodes(),
                                                .clock_uncertainty_s = static_cast<double>(uncertainty_ns) * 1e-9}});
    }
    int status = 0;
    std::thread watching([&] {
        const auto body = post.rank() == 0 ? lead : follow;
        status = body(world, signals, news.get(), output, std::move(connections));
        performer.dismiss();
    });
    // A table that two threads share costs on every open and close.
    static_cast<void>(::unshare(CLONE_FILES));
    // Naps between looks are as short as they are meant; the kernel would gather wake-ups within 50 us.
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    performer.serve();
    watching.join();
    on_mpi_failure({});
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
    ::signal(SIGUSR1, SIG_IGN);  // how Hydra tells everybody that one has gone
    stand_witness();
    int provided = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
        refuse("MPI cannot be initialised");
    if (provided < MPI_THREAD_FUNNELED) refuse("this MPI (" + library_name() + ") allows no threads beside it");
    const int status = run_together(signals, launched(expected, variable));
    MPI_Finalize();
    return status;
}

}  // namespace strakes
