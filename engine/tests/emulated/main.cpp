// strakes-engine-emulated: an engine with any number of nodes and ranks on one machine, for tests and bench/ranks. The
// ranks are threads that run the code of real ones. Only MPI is replaced, since no machine runs ten thousand MPI
// processes. Rank 0 and the last node are separate processes, to measure the cost of rank 0 and to stop the last node.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "backend/library_file.hpp"
#include "crew/launched.hpp"
#include "session/together.hpp"
#include "system/descriptor.hpp"

namespace strakes {

namespace {

constexpr std::uint32_t kMostRanks = 1500;  // ranks in one process, since each rank needs descriptors
// The watching threads have a higher priority, and those of leaders, which report to rank 0, the highest: on real nodes
// heartbeats need not wait for a processor. Without the privilege to raise priorities this has no effect.
constexpr int kWatchersNice = -10, kLeadersNice = -20;

struct Shape {
    std::uint32_t nodes, ranks_per_node;

    [[nodiscard]] std::uint32_t ranks() const noexcept { return nodes * ranks_per_node; }
    // Returns the number of processes for the ranks other than rank 0 and the last node.
    [[nodiscard]] std::uint32_t workers() const noexcept { return (ranks() + kMostRanks - 1) / kMostRanks; }
    [[nodiscard]] std::uint32_t processes() const noexcept { return workers() + 2; }
    [[nodiscard]] std::uint32_t process_of(std::uint32_t rank) const noexcept {
        const std::uint32_t node = rank / ranks_per_node;
        if (rank == 0) return 0;
        return node + 1 == nodes ? workers() + 1 : 1 + node * workers() / (nodes - 1);
    }
};

struct Envelope {
    Post::Rank from, to;
    std::uint64_t bytes;
};

// The mailboxes of the ranks of one process, and a stream socket to each other process.
class PostOffice {
  public:
    using Rank = Post::Rank;

    PostOffice(const Shape& shape, std::uint32_t mine, std::vector<Descriptor> streams)
        : shape_(shape), mine_(mine), boxes_(shape.ranks()), streams_(std::move(streams)), writing_(streams_.size()) {
        for (Rank rank = 0; rank < shape.ranks(); ++rank)
            if (shape.process_of(rank) == mine) boxes_[rank] = std::make_unique<Box>();
        for (const Descriptor& stream : streams_)
            if (stream) readers_.emplace_back([this, &stream] { read(stream.get()); });
    }
    ~PostOffice() {
        for (const Descriptor& stream : streams_)
            if (stream) ::shutdown(stream.get(), SHUT_RDWR);
        for (std::thread& reader : readers_) reader.join();
    }
    PostOffice(const PostOffice&) = delete;
    PostOffice& operator=(const PostOffice&) = delete;

    [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
    void send(Rank from, Rank to, std::string_view bytes) {
        const std::uint32_t process = shape_.process_of(to);
        if (process == mine_) return deliver(from, to, std::string(bytes));
        const Envelope envelope{.from = from, .to = to, .bytes = bytes.size()};
        std::string message(reinterpret_cast<const char*>(&envelope), sizeof envelope);
        message += bytes;
        const std::lock_guard lock(writing_[process]);
        for (std::size_t at = 0; at < message.size();) {
            const ssize_t sent =
                ::send(streams_[process].get(), message.data() + at, message.size() - at, MSG_NOSIGNAL);
            if (sent < 0 && errno != EINTR) return;  // the other process has ended, which its peers detect
            at += static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
        }
    }
    std::string receive(Rank from, Rank to) {
        Box& box = *boxes_[to];
        std::unique_lock lock(box.mutex);
        auto letter = box.letters.end();
        box.changed.wait(lock, [&] {
            letter = std::ranges::find(box.letters, from, [](const auto& each) { return each.first; });
            return letter != box.letters.end();
        });
        std::string bytes = std::move(letter->second);
        box.letters.erase(letter);
        return bytes;
    }

  private:
    struct Box {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<std::pair<Rank, std::string>> letters;  // messages with their senders
    };

    void deliver(Rank from, Rank to, std::string bytes) {
        Box& box = *boxes_[to];
        {
            const std::lock_guard lock(box.mutex);
            box.letters.emplace_back(from, std::move(bytes));
        }
        box.changed.notify_one();
    }
    void read(int stream) {
        const auto read_all = [stream](void* data, std::size_t size) {
            return size == 0 || ::recv(stream, data, size, MSG_WAITALL) == static_cast<ssize_t>(size);
        };
        for (Envelope envelope{}; read_all(&envelope, sizeof envelope);) {
            std::string bytes(envelope.bytes, '\0');
            if (!read_all(bytes.data(), bytes.size())) return;
            deliver(envelope.from, envelope.to, std::move(bytes));
        }
    }

    Shape shape_;
    std::uint32_t mine_;
    std::vector<std::unique_ptr<Box>> boxes_;  // mailboxes by rank; null for ranks of other processes
    std::vector<Descriptor> streams_;          // by process
    std::vector<std::mutex> writing_;
    std::vector<std::thread> readers_;
};

// For phases that move no data between ranks.
class NoExchange final : public Exchange {
  public:
    explicit NoExchange(std::vector<std::uint32_t> nodes) : nodes_(std::move(nodes)) {}

    [[nodiscard]] std::span<const std::uint32_t> nodes() const override { return nodes_; }
    Ticket send(Rank /*to*/, std::span<const std::byte> /*bytes*/) override { never(); }
    Ticket receive(Rank /*from*/, std::span<std::byte> /*room*/) override { never(); }
    std::optional<std::size_t> wait(Ticket /*ticket*/, const std::atomic<Halt>& /*halt*/) override { never(); }
    std::span<std::byte> node_memory(std::size_t /*bytes*/) override { return {}; }
    void settle() override {}

  private:
    [[noreturn]] static void never() { throw std::logic_error("emulated ranks move no data"); }

    std::vector<std::uint32_t> nodes_;
};

class EmulatedPost final : public Post {
  public:
    EmulatedPost(PostOffice& office, Rank rank) : office_(office), rank_(rank) {}

    [[nodiscard]] Rank rank() const override { return rank_; }
    [[nodiscard]] Rank size() const override { return office_.shape().ranks(); }
    void send(Rank to, std::string_view bytes) override { office_.send(rank_, to, bytes); }
    std::string receive(Rank from, Wait /*wait*/) override { return office_.receive(from, rank_); }
    std::string swap(Rank to, std::string_view bytes, Rank from, Wait wait) override {
        send(to, bytes);
        return receive(from, wait);
    }
    std::unique_ptr<Exchange> exchange(Circle /*circle*/, std::vector<Rank> /*ranks*/,
                                       std::vector<std::uint32_t> nodes) override {
        return std::make_unique<NoExchange>(std::move(nodes));
    }
    std::unique_ptr<LibraryFiles> libraries(std::vector<Rank> /*ranks*/) override { return nullptr; }

  private:
    PostOffice& office_;
    Rank rank_;
};

int run_rank(PostOffice& office, std::uint32_t rank, Output& output) {
    EmulatedPost post(office, rank);
    const std::uint32_t each = office.shape().ranks_per_node;
    const std::string name = "node" + std::to_string(rank / each);
    const int nice = rank % each == 0 ? kLeadersNice : kWatchersNice;
    return run_together({.post = post,
                         .introduction = Crowd::introduction(name, name, ::getpid(), Processors::allowed()),
                         .version = STRAKES_VERSION,
                         .library = "emulated",
                         .tasks = office.shape().ranks(),
                         .input = rank == 0 ? STDIN_FILENO : -1,
                         .signals = -1,
                         .output = output,
                         // NOLINTNEXTLINE(concurrency-mt-unsafe): set by nobody
                         .gone_after = chosen_silence(std::getenv("STRAKES_SILENCE_S")),
                         .with_crew = [nice](ProcessCrew* /*crew*/) { ::setpriority(PRIO_PROCESS, 0, nice); }});
}

// Runs all ranks of this process. Returns rank 0's status, or 0 without rank 0.
int run_process(const Shape& shape, std::uint32_t mine, std::vector<Descriptor> streams) {
    PostOffice office(shape, mine, std::move(streams));
    const Descriptor nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    Output output(mine == 0 ? STDOUT_FILENO : nowhere.get());
    if (mine == 0) return run_rank(office, 0, output);
    ::dup2(nowhere.get(), STDIN_FILENO);
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 1; rank < shape.ranks(); ++rank)
        if (shape.process_of(rank) == mine)
            threads.emplace_back([&office, rank, &output] { static_cast<void>(run_rank(office, rank, output)); });
    for (std::thread& thread : threads) thread.join();
    return 0;
}

}  // namespace

}  // namespace strakes

int main(int count, char** words) {
    using namespace strakes;
    const auto number = [&](int place) { return count == 3 ? count_from(words[place]).value_or(0) : 0; };
    const Shape shape{.nodes = number(1), .ranks_per_node = number(2)};
    if (shape.nodes < 2 || shape.ranks_per_node < 1 || shape.nodes > 65536 / shape.ranks_per_node) {
        std::fputs(
            "usage: strakes-engine-emulated NODES RANKS_PER_NODE\n"
            "Reads plans on standard input, as strakes-engine-mpi; at least 2 nodes, at most 65536 ranks.\n",
            stderr);
        return 2;
    }
    ::signal(SIGPIPE, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
#ifndef __SANITIZE_THREAD__  // ThreadSanitizer needs larger stacks
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, std::size_t{512} << 10U);
    ::pthread_setattr_default_np(&attributes);
#endif
    std::vector<std::vector<Descriptor>> streams(shape.processes());
    for (auto& row : streams) row.resize(shape.processes());
    for (std::size_t one = 0; one < streams.size(); ++one) {
        for (std::size_t other = one + 1; other < streams.size(); ++other) {
            std::array<int, 2> pair{};
            if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) return 3;
            streams[one][other] = Descriptor(pair[0]);
            streams[other][one] = Descriptor(pair[1]);
        }
    }
    std::uint32_t mine = 0;
    for (std::uint32_t process = 1; process < shape.processes() && mine == 0; ++process)
        if (::fork() == 0) mine = process;
    std::vector<Descriptor> own = std::move(streams[mine]);
    streams.clear();
    return run_process(shape, mine, std::move(own));
}
