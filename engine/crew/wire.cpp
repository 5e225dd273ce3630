// TCP over whichever of the first process's addresses answers.
#include "crew/wire.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/time.h>

#include <cstring>

#include "system/bytes.hpp"

namespace strakes {

namespace {

constexpr int kConnectMilliseconds = 2000;
constexpr int kLookMilliseconds = 50;

// What a process says first. Whoever does not know the secret is not one of ours.
struct Greeting {
    std::uint64_t secret;
    std::uint32_t rank;
    std::uint32_t unused;
};

// Addresses of this node in IPv4, its own loop left out.
std::vector<in_addr> own_addresses() {
    std::vector<in_addr> addresses;
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return addresses;
    for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
        sockaddr_in address{};
        std::memcpy(&address, one->ifa_addr, sizeof address);
        if ((ntohl(address.sin_addr.s_addr) >> 24U) != 127) addresses.push_back(address.sin_addr);
    }
    ::freeifaddrs(first);
    return addresses;
}

sockaddr_in address_of(in_addr host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr = host;
    address.sin_port = htons(port);
    return address;
}

void answer_quickly(int descriptor) {
    const int yes = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

// 0, or the error number.
int connect_in_time(int descriptor, const sockaddr_in& address) {
    if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, kConnectMilliseconds) <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

// 0, or the error number. Something else may listen on that port of that address: it is the exchange that knows the
// secret, too.
int greet(int descriptor, const Greeting& greeting) {
    if (::send(descriptor, &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting) return errno;
    pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kConnectMilliseconds) <= 0) return ETIMEDOUT;
    std::uint64_t answer = 0;
    const ssize_t size = ::recv(descriptor, &answer, sizeof answer, 0);
    if (size < 0) return errno;
    return size == sizeof answer && answer == greeting.secret ? 0 : ECONNREFUSED;
}

}  // namespace

Switchboard::Switchboard(std::uint32_t ranks) : connections_(ranks), missing_(ranks - 1) {
    listener_ = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address = address_of({htonl(INADDR_ANY)}, 0);
    socklen_t size = sizeof address;
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (!listener_ || ::bind(listener_.get(), plain, size) != 0 || ::listen(listener_.get(), SOMAXCONN) != 0 ||
        ::getsockname(listener_.get(), plain, &size) != 0 ||
        ::getrandom(&secret_, sizeof secret_, 0) != sizeof secret_) {
        why_ = std::string("rank 0 cannot listen for connections: ") + std::strerror(errno);
        return;
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { accept_all(); });
}

std::string Switchboard::where() const {
    if (!why_.empty()) return {};
    Packer packer;
    packer.put(port_);
    packer.put(secret_);
    for (const in_addr one : own_addresses()) packer.put(one);
    return packer.take();
}

void Switchboard::accept_all() {
    while (missing_ > 0 && !stopped_) {
        pollfd ready{.fd = listener_.get(), .events = POLLIN, .revents = 0};
        if (::poll(&ready, 1, kLookMilliseconds) > 0) accept_one();
    }
}

void Switchboard::accept_one() {
    Descriptor descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!descriptor) return;
    constexpr timeval kPatience{.tv_sec = 2, .tv_usec = 0};
    ::setsockopt(descriptor.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    Greeting greeting{};
    if (::recv(descriptor.get(), &greeting, sizeof greeting, MSG_WAITALL) != sizeof greeting) return;
    if (greeting.secret != secret_ || greeting.rank == 0 || greeting.rank >= connections_.size()) return;
    if (connections_[greeting.rank]) return;
    answer_quickly(descriptor.get());
    if (::send(descriptor.get(), &secret_, sizeof secret_, MSG_NOSIGNAL) != sizeof secret_) return;
    connections_[greeting.rank] = std::move(descriptor);
    --missing_;
}

void Switchboard::stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
}

std::vector<Descriptor> Switchboard::take() {
    if (thread_.joinable()) thread_.join();
    return std::move(connections_);
}

Connected connect_to(std::string_view where, bool same_node, std::uint32_t rank) {
    Unpacker unpacker(where);
    const auto port = unpacker.get<std::uint16_t>();
    const auto secret = unpacker.get<std::uint64_t>();
    std::vector<in_addr> addresses;
    if (same_node) addresses.push_back({htonl(INADDR_LOOPBACK)});
    while (!unpacker.at_end()) addresses.push_back(unpacker.get<in_addr>());
    Connected connected;
    for (const in_addr host : addresses) {
        Descriptor descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        int error = descriptor ? connect_in_time(descriptor.get(), address_of(host, port)) : errno;
        if (error == 0) error = greet(descriptor.get(), {.secret = secret, .rank = rank, .unused = 0});
        if (error == 0) {
            answer_quickly(descriptor.get());
            return {.descriptor = std::move(descriptor), .why = {}};
        }
        std::array<char, INET_ADDRSTRLEN> text{};
        ::inet_ntop(AF_INET, &host, text.data(), text.size());
        connected.why += (connected.why.empty() ? "" : "; ") + std::string(text.data()) + " port " +
                         std::to_string(port) + ": " + std::strerror(error);
    }
    if (connected.why.empty()) connected.why = "the node of rank 0 has no address";
    return connected;
}

}  // namespace strakes
