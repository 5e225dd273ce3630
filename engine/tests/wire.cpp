// The start-up port: all processes come through, whoever else knocks.
#include "crew/wire.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "system/bytes.hpp"

using namespace strakes;

namespace {

// A connection that says `words` and then nothing.
Descriptor knock(std::uint16_t port, std::string_view words) {
    Descriptor descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    REQUIRE(::connect(descriptor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    if (!words.empty()) REQUIRE(::send(descriptor.get(), words.data(), words.size(), 0) > 0);
    return descriptor;
}

}  // namespace

TEST_CASE("silent connections and strangers keep nobody waiting") {
    constexpr std::uint32_t kRanks = 12;
    Switchboard switchboard(kRanks);
    const std::string where = switchboard.where();
    REQUIRE_FALSE(where.empty());
    const auto port = Unpacker(where).get<std::uint16_t>();
    std::vector<Descriptor> strangers;
    for (int i = 0; i < 3; ++i) strangers.push_back(knock(port, ""));
    strangers.push_back(knock(port, "GET / HTTP/1.0\r\n\r\n"));
    strangers.push_back(knock(port, "abc"));
    const auto before = std::chrono::steady_clock::now();
    std::vector<Connected> connected(kRanks);
    std::vector<std::thread> processes;
    for (std::uint32_t rank = 1; rank < kRanks; ++rank)
        processes.emplace_back([&, rank] { connected[rank] = connect_to(where, true, rank); });
    for (std::thread& process : processes) process.join();
    CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(2));
    const std::vector<Descriptor> connections = switchboard.take();
    for (std::uint32_t rank = 1; rank < kRanks; ++rank) {
        CHECK(connected[rank].why.empty());
        // What one says the other hears.
        REQUIRE(::send(connected[rank].descriptor.get(), &rank, sizeof rank, 0) == sizeof rank);
        std::uint32_t said = 0;
        timeval patience{.tv_sec = 5, .tv_usec = 0};
        ::setsockopt(connections[rank].get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        CHECK(::recv(connections[rank].get(), &said, sizeof said, MSG_WAITALL) == sizeof said);
        CHECK(said == rank);
    }
}

TEST_CASE("too few descriptors for all ranks are said before anybody connects") {
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlimit few{.rlim_cur = 256, .rlim_max = limit.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    const Switchboard switchboard(250);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(switchboard.where().empty());
    CHECK(switchboard.why().find("ulimit -n") != std::string::npos);
}
