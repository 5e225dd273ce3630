// Connections at start-up: all processes connect, even if strangers connect as well.
#include "crew/wire.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "crew/silence.hpp"
#include "system/bytes.hpp"

using namespace strakes;

namespace {

// Open a connection and send `words`, then nothing more.
Descriptor knock(std::uint16_t port, std::string_view words, int kind = SOCK_STREAM | SOCK_CLOEXEC) {
    Descriptor descriptor(::socket(AF_INET, kind, 0));
    if (!descriptor) return descriptor;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const int refused = ::connect(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    REQUIRE((refused == 0 || errno == EINPROGRESS));
    if (!words.empty()) REQUIRE(::send(descriptor.get(), words.data(), words.size(), 0) > 0);
    return descriptor;
}

}  // namespace

TEST_CASE("silent connections and strangers do not delay the processes") {
    constexpr std::uint32_t kRanks = 12;
    Switchboard switchboard(kRanks, Reach::network);
    const std::string where = switchboard.where();
    REQUIRE_FALSE(where.empty());
    const auto port = Unpacker(where).get<std::uint16_t>();
    std::vector<Descriptor> strangers;
    strangers.reserve(5);
    for (int i = 0; i < 3; ++i) strangers.push_back(knock(port, ""));
    strangers.push_back(knock(port, "GET / HTTP/1.0\r\n\r\n"));
    strangers.push_back(knock(port, "abc"));
    const auto before = std::chrono::steady_clock::now();
    std::vector<Connected> connected(kRanks);
    std::vector<std::thread> processes;
    for (std::uint32_t rank = 1; rank < kRanks; ++rank)
        processes.emplace_back([&, rank] { connected[rank] = connect_to(where, rank); });
    for (std::thread& process : processes) process.join();
    CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(2));
    const std::vector<Descriptor> connections = switchboard.take();
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) {
        CHECK(connected[rank].why.empty());
        // The ends are paired correctly.
        REQUIRE(::send(connected[rank].descriptor.get(), &rank, sizeof rank, 0) == sizeof rank);
        std::uint32_t said = 0;
        timeval patience{.tv_sec = 5, .tv_usec = 0};
        ::setsockopt(connections[rank].get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        CHECK(::recv(connections[rank].get(), &said, sizeof said, MSG_WAITALL) == sizeof said);
        CHECK(said == rank);
    }
}

namespace {

// The bytes received up to `most`, the end of the stream, or a time-out.
struct Heard {
    std::string bytes;
    bool ended = false;
};

Heard hear(int descriptor, std::size_t most, long seconds = 5) {
    const timeval patience{.tv_sec = seconds, .tv_usec = 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    Heard heard;
    std::string piece(most, '\0');
    while (heard.bytes.size() < most && !heard.ended) {
        const ssize_t size = ::recv(descriptor, piece.data(), most - heard.bytes.size(), 0);
        if (size < 0) break;
        heard.ended = size == 0;
        heard.bytes.append(piece.data(), static_cast<std::size_t>(size));
    }
    return heard;
}

template <class Value>
void say(int descriptor, const Value& value) {
    REQUIRE(::send(descriptor, &value, sizeof value, MSG_NOSIGNAL) == sizeof value);
}

// Imitate an exchange that does not know the secret. Return all that a process sends to it. `second` reacts to the
// process's proof.
template <class Second>
std::string pretend(std::uint16_t& port, const Secret& secret, Second second, Connected& connected) {
    const Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
    const Descriptor process = knock(port, "");
    const Descriptor own(::accept(listener.get(), nullptr, nullptr));
    int error = 0;
    std::thread proving([&] { error = prove_to_exchange(process.get(), secret, 3, 2000); });
    std::string all = hear(own.get(), sizeof(Greeting)).bytes;
    say(own.get(), Nonce{});
    const std::string proof = hear(own.get(), sizeof(Digest)).bytes;
    all += proof;
    second(own.get(), proof);
    proving.join();
    connected.why = std::strerror(error);
    return all;
}

}  // namespace

TEST_CASE("a client without the secret takes no process's place and learns nothing") {
    Switchboard switchboard(3, Reach::network);
    const std::string where = switchboard.where();
    Unpacker unpacker(where);
    const auto port = unpacker.get<std::uint16_t>();
    const auto secret = unpacker.get<Secret>();
    const Greeting greeting{.rank = 1, .nonce = {}};
    const auto knock_as = [&](Side side, const Secret& known, std::uint32_t rank, std::uint32_t proved) {
        Descriptor stranger = knock(port, "");
        say(stranger.get(), Greeting{.rank = rank, .nonce = {}});
        Nonce nonce{};
        const std::string answer = hear(stranger.get(), sizeof nonce).bytes;
        if (answer.size() != sizeof nonce) return Heard{.bytes = answer, .ended = true};
        std::memcpy(&nonce, answer.data(), sizeof nonce);
        say(stranger.get(), proof_of(side, known, {.rank = proved, .nonce = {}}, nonce));
        return hear(stranger.get(), sizeof(Digest));
    };
    Secret other = secret;
    other[31] ^= 1U;
    for (const Heard& heard : {knock_as(Side::process, other, 1, 1), knock_as(Side::exchange, secret, 1, 1),
                               knock_as(Side::process, secret, 1, 2), knock_as(Side::process, secret, 0, 0),
                               knock_as(Side::process, secret, 3, 3)}) {
        CHECK(heard.ended);
        CHECK(heard.bytes.empty());
    }
    // A proof observed on one connection is not valid on another.
    Descriptor first = knock(port, ""), second = knock(port, "");
    Nonce nonce{};
    for (const Descriptor* stranger : {&first, &second}) {
        say(stranger->get(), greeting);
        const std::string answer = hear(stranger->get(), sizeof nonce).bytes;
        REQUIRE(answer.size() == sizeof nonce);
        if (stranger == &first) std::memcpy(&nonce, answer.data(), sizeof nonce);
    }
    say(second.get(), proof_of(Side::process, secret, greeting, nonce));
    CHECK(hear(second.get(), sizeof(Digest)).bytes.empty());
    std::vector<Connected> connected(3);
    for (std::uint32_t rank = 1; rank < 3; ++rank) connected[rank] = connect_to(where, rank);
    const std::vector<Descriptor> connections = switchboard.take();
    for (std::uint32_t rank = 1; rank < 3; ++rank) {
        CHECK(connected[rank].why.empty());
        say(connected[rank].descriptor.get(), rank);
        std::uint32_t told = 0;
        const std::string bytes = hear(connections[rank].get(), sizeof told).bytes;
        REQUIRE(bytes.size() == sizeof told);
        std::memcpy(&told, bytes.data(), sizeof told);
        CHECK(told == rank);
    }
}

TEST_CASE("a process rejects an exchange without the secret, and does not disclose the secret") {
    Secret secret{};
    for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::uint8_t>(17 * i + 1);
    const std::string_view known(reinterpret_cast<const char*>(secret.data()), 8);
    std::uint16_t port = 0;
    Connected connected;
    const auto echo = [](int descriptor, const std::string& proof) {
        REQUIRE(::send(descriptor, proof.data(), proof.size(), MSG_NOSIGNAL) > 0);
    };
    const auto leave = [](int descriptor, const std::string&) { ::shutdown(descriptor, SHUT_RDWR); };
    const auto guess = [](int descriptor, const std::string&) { say(descriptor, Digest{}); };
    for (const std::string& overheard :
         {pretend(port, secret, echo, connected), pretend(port, secret, leave, connected),
          pretend(port, secret, guess, connected)}) {
        CHECK(connected.why == std::strerror(ECONNREFUSED));
        CHECK(overheard.size() == sizeof(Greeting) + sizeof(Digest));
        CHECK(overheard.find(known) == std::string::npos);
    }
    const auto silence = [](int, const std::string&) {};
    (void)pretend(port, secret, silence, connected);
    CHECK(connected.why == std::strerror(ETIMEDOUT));
}

TEST_CASE("TCP keeps a connection for longer than the chosen silence") {
    Switchboard switchboard(2, Reach::network);
    const Connected connected = connect_to(switchboard.where(), 1);
    const std::vector<Descriptor> connections = switchboard.take();
    for (const int end : {connected.descriptor.get(), connections[1].get()}) {
        outlast_silence(end, kLongestSilence);
        int milliseconds = 0;
        socklen_t size = sizeof milliseconds;
        REQUIRE(::getsockopt(end, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, &size) == 0);
        CHECK(std::chrono::milliseconds(milliseconds) > kLongestSilence);
    }
}

TEST_CASE("the processes of one node connect without a network port") {
    constexpr std::uint32_t kRanks = 5;
    Switchboard switchboard(kRanks, Reach::node);
    const std::string where = switchboard.where();
    CHECK(Unpacker(where).get<std::uint16_t>() == 0);  // no port
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) CHECK(connect_to(where, rank).why.empty());
    const std::vector<Descriptor> connections = switchboard.take();
    CHECK(std::ranges::count_if(connections, [](const Descriptor& each) { return bool(each); }) == kRanks - 1);
}

TEST_CASE("another user of the machine is disconnected from the socket of a node's ranks at once") {
    if (::geteuid() != 0) return;
    Switchboard switchboard(2, Reach::node);
    const std::string where = switchboard.where();
    Unpacker unpacker(where);
    (void)unpacker.get<std::uint16_t>();
    (void)unpacker.get<Secret>();
    const auto address = unpacker.get<sockaddr_storage>();
    const auto length = unpacker.get<socklen_t>();
    const auto closed_for = [&](uid_t user) {
        const pid_t child = ::fork();
        if (child == 0) {
            const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
            if (::setuid(user) != 0 || ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), length) != 0)
                ::_exit(2);
            pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
            char byte = 0;
            ::_exit(::poll(&ready, 1, 1000) == 1 && ::recv(descriptor, &byte, 1, 0) == 0 ? 0 : 1);
        }
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        return WEXITSTATUS(status);
    };
    CHECK(closed_for(65534) == 0);
    CHECK(closed_for(0) == 1);
}

namespace {

class FewDescriptors {
  public:
    explicit FewDescriptors(rlim_t count) {
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        const rlimit few{.rlim_cur = count, .rlim_max = before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;
    ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_{};
};

}  // namespace

TEST_CASE("a limit of descriptors that is too low for all ranks is reported before any process connects") {
    const FewDescriptors few(256);
    for (const Reach reach : {Reach::node, Reach::network}) {
        const Switchboard switchboard(250, reach);
        CHECK(switchboard.where().empty());
        CHECK(switchboard.why().find("ulimit -n") != std::string::npos);
    }
}

TEST_CASE("strangers that fill the descriptor table do not exclude processes") {
    constexpr std::uint32_t kRanks = 4;
    const FewDescriptors few(200);
    Switchboard switchboard(kRanks, Reach::network);
    const std::string where = switchboard.where();
    const auto port = Unpacker(where).get<std::uint16_t>();
    // Connect until the table is full, also for the accepting side, which is in this process. The spare descriptors are
    // then freed for the ranks.
    std::vector<Descriptor> strangers, spare;
    for (int i = 0; i < 20; ++i) spare.emplace_back(::dup(STDIN_FILENO));
    for (Descriptor next; (next = knock(port, "", SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK));)
        strangers.push_back(std::move(next));
    CHECK(strangers.size() > 50);
    spare.clear();
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) CHECK(connect_to(where, rank).why.empty());
    CHECK(switchboard.take().size() == kRanks);
}

namespace {

// Move this thread and its later child threads to a network namespace that has only the loopback interface. Return
// false if this is not permitted.
bool enter_own_network() {
    if (::unshare(CLONE_NEWNET) != 0) return false;
    const Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loop{};
    std::strcpy(loop.ifr_name, "lo");
    loop.ifr_flags = IFF_UP;
    return any && ::ioctl(any.get(), SIOCSIFFLAGS, &loop) == 0;
}

// Connect all ranks except 0 to a switchboard of this thread. Return why the first of them failed, or an empty string.
std::string meet(std::uint32_t ranks) {
    Switchboard switchboard(ranks, Reach::network);
    const std::string where = switchboard.where();
    std::vector<Connected> connected(ranks);
    std::vector<std::thread> processes;
    for (std::uint32_t rank = 1; rank < ranks; ++rank)
        processes.emplace_back([&, rank] { connected[rank] = connect_to(where, rank); });
    for (std::thread& process : processes) process.join();
    for (const Connected& each : connected)
        if (!each.why.empty()) return each.why;
    const std::vector<Descriptor> connections = switchboard.take();
    const auto there = std::ranges::count_if(connections, [](const Descriptor& each) { return bool(each); });
    return there == ranks - 1 ? "" : "connections are missing";
}

}  // namespace

TEST_CASE("processes connect if there are only IPv6 addresses, and one after another with a backlog of one") {
    for (const bool only_six : {true, false}) {
        std::string why;
        std::thread([&] {
            if (!enter_own_network()) return;
            if (!only_six) std::ofstream("/proc/sys/net/core/somaxconn") << "1";
            // Remove the IPv4 address of the loopback interface and keep the IPv6 address.
            const Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
            ifreq loop{};
            std::strcpy(loop.ifr_name, "lo");
            loop.ifr_addr.sa_family = AF_INET;
            why = only_six && ::ioctl(any.get(), SIOCSIFADDR, &loop) != 0 ? "IPv4 stays" : meet(only_six ? 4 : 64);
        }).join();
        CHECK(why.empty());
    }
}
