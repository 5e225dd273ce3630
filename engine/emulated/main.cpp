// strakes-engine-emulated: an engine with any number of nodes and ranks on one machine. The ranks are threads that run
// the same code as real ones: sessions, crews, connections, clocks, plans. Only MPI is replaced (post.hpp), since no
// machine can run ten thousand MPI processes.
//
// Rank 0 is a separate process, so that its cost can be measured. The last node is one as well, so that it can be
// stopped.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "crew/launched.hpp"
#include "emulated/post.hpp"
#include "session/together.hpp"
#include "system/descriptor.hpp"
#include "system/processors.hpp"

using namespace strakes;

namespace {

// Ranks in one process, since each rank needs descriptors.
constexpr std::uint32_t kMostRanks = 1500;
// On a real node, heartbeats need not wait for a processor. Here all nodes share the processors of one machine, so the
// watching threads have a higher priority, and the threads of leaders, which report to rank 0, the highest. Without the
// privilege to raise priorities this has no effect.
constexpr int kWatchersNice = -10, kLeadersNice = -20;
[[maybe_unused]] constexpr std::size_t kStackBytes = std::size_t{512} << 10U;

struct Shape {
    std::uint32_t nodes = 2;
    std::uint32_t ranks_per_node = 2;
    [[nodiscard]] std::uint32_t ranks() const noexcept { return nodes * ranks_per_node; }
    // Returns the number of processes for the ranks other than rank 0 and the last node.
    [[nodiscard]] std::uint32_t workers() const noexcept { return (ranks() + kMostRanks - 1) / kMostRanks; }
    [[nodiscard]] std::uint8_t processes() const noexcept { return static_cast<std::uint8_t>(workers() + 2); }
    [[nodiscard]] std::uint8_t process_of(std::uint32_t rank) const noexcept {
        const std::uint32_t node = rank / ranks_per_node;
        if (rank == 0) return 0;
        if (node + 1 == nodes) return static_cast<std::uint8_t>(workers() + 1);
        return static_cast<std::uint8_t>(1 + std::uint64_t{node} * workers() / (nodes - 1));
    }
};

std::optional<Shape> shape_from(std::span<char*> words) {
    if (words.size() != 3) return std::nullopt;
    const auto nodes = count_from(words[1]), ranks = count_from(words[2]);
    if (!nodes || !ranks || *nodes < 2 || *ranks < 1 || *nodes > 65536 / *ranks) return std::nullopt;
    return Shape{.nodes = *nodes, .ranks_per_node = *ranks};
}

void allow_many_descriptors() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run_rank(PostOffice& office, const Shape& shape, std::uint32_t rank, Output& output) {
    EmulatedPost post(office, rank);
    const std::uint32_t node = rank / shape.ranks_per_node;
    const std::string name = "node" + std::to_string(node);
    const int nice = rank % shape.ranks_per_node == 0 ? kLeadersNice : kWatchersNice;
    return run_together({.post = post,
                         .introduction = Crowd::introduction(name, name, ::getpid(), Processors::allowed()),
                         .version = STRAKES_VERSION,
                         .library = "emulated",
                         .tasks = shape.ranks(),
                         .input = rank == 0 ? STDIN_FILENO : -1,
                         .signals = -1,
                         .output = output,
                         // NOLINTNEXTLINE(concurrency-mt-unsafe): set by nobody
                         .gone_after = chosen_silence(std::getenv("STRAKES_SILENCE_S")),
                         .with_crew = [nice](ProcessCrew* /*crew*/) { ::setpriority(PRIO_PROCESS, 0, nice); }});
}

struct Seat {
    PostOffice* office;
    const Shape* shape;
    std::uint32_t rank;
    Output* output;
};

void* enter(void* argument) {
    const Seat& seat = *static_cast<const Seat*>(argument);
    static_cast<void>(run_rank(*seat.office, *seat.shape, seat.rank, *seat.output));
    return nullptr;
}

// Runs all ranks of this process. Returns rank 0's status, or 0 without rank 0, or 1 on an error.
int run_process(const Shape& shape, std::uint8_t mine, std::vector<Descriptor> streams) {
    std::vector<std::uint8_t> process_of(shape.ranks());
    for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank) process_of[rank] = shape.process_of(rank);
    PostOffice office(process_of, mine, std::move(streams));
    const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    Output output(mine == 0 ? STDOUT_FILENO : nowhere.get());
    if (mine == 0) return run_rank(office, shape, 0, output);
    std::vector<Seat> seats;
    for (std::uint32_t rank = 0; rank < shape.ranks(); ++rank)
        if (process_of[rank] == mine)
            seats.push_back({.office = &office, .shape = &shape, .rank = rank, .output = &output});
    std::vector<pthread_t> threads(seats.size());
    for (std::size_t i = 0; i < seats.size(); ++i) {
        if (::pthread_create(&threads[i], nullptr, enter, &seats[i]) != 0) {
            std::fprintf(stderr, "strakes-engine-emulated: this machine runs no more than %zu threads\n", 2 * i);
            return 1;
        }
    }
    for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
    return 0;
}

}  // namespace

int main(int count, char** words) {
    const std::optional<Shape> shape = shape_from({words, static_cast<std::size_t>(count)});
    if (!shape) {
        std::fputs(
            "usage: strakes-engine-emulated NODES RANKS_PER_NODE\n"
            "Reads plans on standard input, as strakes-engine-mpi; at least 2 nodes, at most 65536 ranks.\n",
            stderr);
        return 2;
    }
    ::signal(SIGPIPE, SIG_IGN);
    allow_many_descriptors();
#ifndef __SANITIZE_THREAD__  // ThreadSanitizer needs larger stacks
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, kStackBytes);
    ::pthread_setattr_default_np(&attributes);
#endif
    const std::uint8_t processes = shape->processes();
    std::vector<std::vector<Descriptor>> streams(processes);
    for (auto& row : streams) row.resize(processes);
    for (std::size_t one = 0; one < processes; ++one) {
        for (std::size_t other = one + 1; other < processes; ++other) {
            std::array<int, 2> pair{};
            if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return 3;
            streams[one][other] = Descriptor(pair[0]);
            streams[other][one] = Descriptor(pair[1]);
        }
    }
    std::uint8_t mine = 0;
    for (std::uint8_t process = 1; process < processes && mine == 0; ++process)
        if (::fork() == 0) mine = process;
    if (mine != 0) {
        const Descriptor nothing(::open("/dev/null", O_RDONLY));
        ::dup2(nothing.get(), STDIN_FILENO);
    }
    std::vector<Descriptor> own = std::move(streams[mine]);
    streams.clear();
    return run_process(*shape, mine, std::move(own));
}
