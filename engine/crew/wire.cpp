// Connects nodes by TCP to the first address of the leader that answers, and ranks of a node by abstract Unix sockets.
#include "crew/wire.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "system/bytes.hpp"

namespace strakes {

namespace {

using std::chrono::milliseconds;
using Time = std::chrono::steady_clock;

constexpr int kConnectMilliseconds = 2000;
constexpr int kLookMilliseconds = 50;
// Time for retries, needed when all processes connect at the same time and overflow the system's queue.
constexpr std::chrono::seconds kConnectPatience{30};
// Maximum duration and number of unauthenticated connections. Beyond this number, a new one displaces the oldest.
constexpr std::chrono::seconds kStrayPatience{5};
constexpr std::size_t kMostStrays = 4096;
constexpr std::size_t kSpareDescriptors = 64;  // Number of descriptors that connections leave free for files.
constexpr std::size_t kNameBytes = 16;
// TCP_RTO_MAX_MS (Linux 6.15) limits the retransmission time-out, which otherwise grows while a link is down.
constexpr int kTcpLongestTimeout = 44;
constexpr int kLongestTimeoutMilliseconds = 1000;

struct Address {
    sockaddr_storage storage{};
    socklen_t length = 0;

    Address() = default;
    template <class Kind>
    explicit Address(const Kind& address, socklen_t size = sizeof(Kind)) : length(size) {
        std::memcpy(&storage, &address, sizeof address);
    }
    [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address of_four(in_addr address, in_port_t port) {
    return Address(sockaddr_in{.sin_family = AF_INET, .sin_port = port, .sin_addr = address, .sin_zero = {}});
}

Address of_six(const in6_addr& address, in_port_t port) {
    return Address(sockaddr_in6{
        .sin6_family = AF_INET6, .sin6_port = port, .sin6_flowinfo = 0, .sin6_addr = address, .sin6_scope_id = 0});
}

// An abstract Unix socket.
Address of_name(std::string_view name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
    return Address(address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size()));
}

// Returns the addresses of this node, IPv4 first, without link-local IPv6 addresses. Falls back to loopback addresses.
std::vector<Address> own_addresses(in_port_t port) {
    std::vector<Address> addresses, six;
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return addresses;
    for (const ifaddrs* interface = first; interface != nullptr; interface = interface->ifa_next) {
        if (interface->ifa_addr == nullptr) continue;
        if (interface->ifa_addr->sa_family == AF_INET) {
            sockaddr_in address{};
            std::memcpy(&address, interface->ifa_addr, sizeof address);
            if ((ntohl(address.sin_addr.s_addr) >> 24U) != 127) addresses.push_back(of_four(address.sin_addr, port));
        } else if (interface->ifa_addr->sa_family == AF_INET6) {
            sockaddr_in6 address{};
            std::memcpy(&address, interface->ifa_addr, sizeof address);
            if (!IN6_IS_ADDR_LOOPBACK(&address.sin6_addr) && !IN6_IS_ADDR_LINKLOCAL(&address.sin6_addr))
                six.push_back(of_six(address.sin6_addr, port));
        }
    }
    ::freeifaddrs(first);
    addresses.insert(addresses.end(), six.begin(), six.end());
    if (addresses.empty()) addresses = {of_four({htonl(INADDR_LOOPBACK)}, port), of_six(in6addr_loopback, port)};
    return addresses;
}

std::string text_of(const Address& address) {
    if (address.storage.ss_family == AF_UNIX) return "the socket of this node";
    std::array<char, INET6_ADDRSTRLEN> host{};
    std::array<char, 8> port{};
    ::getnameinfo(address.get(), address.length, host.data(), host.size(), port.data(), port.size(),
                  NI_NUMERICHOST | NI_NUMERICSERV);
    return std::string(host.data()) + " port " + port.data();
}

void answer_quickly(int descriptor) {
    const int yes = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    ::setsockopt(descriptor, IPPROTO_TCP, kTcpLongestTimeout, &kLongestTimeoutMilliseconds, sizeof(int));
}

// This check is needed because every user of the machine can connect to an abstract socket.
bool is_of_this_user(int descriptor) {
    ucred peer{};
    socklen_t size = sizeof peer;
    return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

int connect_in_time(int descriptor, const Address& to) {
    if (::connect(descriptor, to.get(), to.length) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, kConnectMilliseconds) <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

}  // namespace

void outlast_silence(int descriptor, milliseconds gone_after) {
    const int give_up = static_cast<int>((2 * gone_after).count());
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up, sizeof give_up);
}

Switchboard::Switchboard(std::uint32_t seats, Reach reach) : connections_(seats), missing_(seats - 1) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < seats + kSpareDescriptors) {
        why_ = "a leader may have " + std::to_string(limit.rlim_cur) + " files open, and needs one for each of " +
               std::to_string(seats) + (reach == Reach::node ? " ranks of its node" : " nodes") + " and " +
               std::to_string(kSpareDescriptors) + " more: raise the limit of open files (ulimit -n) on its node";
        return;
    }
    // A socket for IPv6 accepts IPv4 as well.
    if (reach == Reach::node ? !listen_here() : !listen_on(AF_INET6) && !listen_on(AF_INET)) {
        why_ = std::string("a leader cannot listen for connections: ") + std::strerror(errno);
        return;
    }
    const std::optional<Secret> secret = make_nonce();
    if (!secret) {
        why_ = std::string("a leader has no random numbers: ") + std::strerror(errno);
        return;
    }
    secret_ = *secret;
    thread_ = std::thread([this] { accept_all(); });
}

bool Switchboard::listen_here() {
    const std::optional<Nonce> nonce = make_nonce();
    if (!nonce) return false;
    name_.assign("strakes-");
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (std::size_t i = 0; i < kNameBytes; ++i) name_ += kDigits[(*nonce)[i] % kDigits.size()];
    listener_ = Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const Address address = of_name(name_);
    return listener_ && ::bind(listener_.get(), address.get(), address.length) == 0 &&
           ::listen(listener_.get(), SOMAXCONN) == 0;
}

bool Switchboard::listen_on(std::uint16_t family) {
    listener_ = Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!listener_) return false;
    const Address any = family == AF_INET6 ? of_six(in6addr_any, 0) : of_four({INADDR_ANY}, 0);
    if (family == AF_INET6) {
        const int only = 0;
        if (::setsockopt(listener_.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only) != 0) return false;
    }
    sockaddr_in6 bound{};  // Also used for IPv4, where the port has the same offset.
    socklen_t size = sizeof bound;
    if (::bind(listener_.get(), any.get(), any.length) != 0 || ::listen(listener_.get(), SOMAXCONN) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
        return false;
    port_ = bound.sin6_port;
    return true;
}

std::string Switchboard::where() const {
    if (!why_.empty()) return {};
    Packer packer;
    packer.put(ntohs(port_));
    packer.put(secret_);
    for (const Address& address : name_.empty() ? own_addresses(port_) : std::vector{of_name(name_)})
        packer.put(address);
    return packer.take();
}

// Polls all connections together, so that a silent connection does not delay the others.
void Switchboard::accept_all() {
    while (missing_ > 0 && !stopped_) {
        std::vector<pollfd> ready{{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
        for (const Stray& stray : strays_)
            ready.push_back({.fd = stray.descriptor.get(), .events = POLLIN, .revents = 0});
        if (::poll(ready.data(), ready.size(), kLookMilliseconds) < 0 && errno != EINTR) {
            strays_.clear();  // EINVAL: the limit of open files was lowered below their number
            std::this_thread::sleep_for(milliseconds(kLookMilliseconds));
        }
        for (std::size_t i = strays_.size(); i > 0; --i)
            if (ready[i].revents != 0 && !hear(strays_[i - 1])) strays_[i - 1].descriptor = Descriptor();
        const auto now = Time::now();
        std::erase_if(strays_, [now](const Stray& stray) { return !stray.descriptor || now > stray.until; });
        if (ready[0].revents != 0) accept_waiting();
    }
    strays_.clear();
}

void Switchboard::accept_waiting() {
    for (;;) {
        if (strays_.size() >= kMostStrays) strays_.erase(strays_.begin());
        Descriptor descriptor(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!descriptor) break;
        if (!name_.empty() && !is_of_this_user(descriptor.get())) continue;
        strays_.push_back({.descriptor = std::move(descriptor),
                           .heard = {},
                           .greeting = {},
                           .nonce = {},
                           .until = Time::now() + kStrayPatience});
    }
    if (errno != EMFILE && errno != ENFILE) return;
    // Without a free descriptor, new connections stay in the queue. Closes the oldest unauthenticated connection, or
    // waits until another thread closes a descriptor.
    if (!strays_.empty())
        strays_.erase(strays_.begin());
    else
        std::this_thread::sleep_for(milliseconds(kLookMilliseconds));
}

// Returns false if the connection was closed by the peer, was refused, or has been authenticated.
bool Switchboard::hear(Stray& stray) {
    const std::size_t expected = stray.greeting ? sizeof(Digest) : sizeof(Greeting);
    std::array<char, std::max(sizeof(Greeting), sizeof(Digest))> piece{};
    const ssize_t size = ::recv(stray.descriptor.get(), piece.data(), expected - stray.heard.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (size <= 0) return false;
    stray.heard.append(piece.data(), static_cast<std::size_t>(size));
    if (stray.heard.size() < expected) return true;
    Unpacker unpacker(stray.heard);
    if (stray.greeting) {
        const Greeting& greeting = *stray.greeting;
        if (accept_proof(stray, greeting, unpacker.get<Digest>())) join(stray, greeting);
        return false;
    }
    const auto greeting = unpacker.get<Greeting>();
    stray.greeting = greeting;
    stray.heard.clear();
    const std::optional<Nonce> nonce = make_nonce();
    if (!nonce || greeting.rank == 0 || greeting.rank >= connections_.size()) return false;
    stray.nonce = *nonce;
    answer_quickly(stray.descriptor.get());
    return ::send(stray.descriptor.get(), &stray.nonce, sizeof stray.nonce, MSG_NOSIGNAL) == sizeof stray.nonce;
}

bool Switchboard::accept_proof(const Stray& stray, const Greeting& greeting, const Digest& proof) const {
    if (!same_proof(proof, proof_of(Side::process, secret_, greeting, stray.nonce))) return false;
    const Digest own = proof_of(Side::exchange, secret_, greeting, stray.nonce);
    return ::send(stray.descriptor.get(), &own, sizeof own, MSG_NOSIGNAL) == sizeof own;
}

void Switchboard::join(Stray& stray, const Greeting& greeting) {
    Descriptor& connection = connections_[greeting.rank];
    // An earlier connection of this rank is replaced: its process gave up waiting for the answer and connected again.
    if (!connection) --missing_;
    connection = std::move(stray.descriptor);
}

void Switchboard::stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
}

std::vector<Descriptor> Switchboard::take() {
    if (thread_.joinable()) thread_.join();
    return std::move(connections_);
}

Connected connect_to(std::string_view where, std::uint32_t seat) {
    Unpacker unpacker(where);
    static_cast<void>(unpacker.get<std::uint16_t>());  // skip the port, which the addresses also contain
    const auto secret = unpacker.get<Secret>();
    std::vector<Address> addresses;
    while (!unpacker.at_end()) addresses.push_back(unpacker.get<Address>());
    Connected connected;
    const auto until = Time::now() + kConnectPatience;
    for (milliseconds pause{50}; Time::now() < until; pause = std::min(2 * pause, milliseconds(1000))) {
        connected.why.clear();
        for (const Address& address : addresses) {
            Descriptor descriptor(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
            int error = descriptor ? connect_in_time(descriptor.get(), address) : errno;
            // Another program may listen on this port, so the peer must prove that it knows the secret.
            if (error == 0) error = prove_to_exchange(descriptor.get(), secret, seat, kConnectMilliseconds);
            if (error == 0) {
                answer_quickly(descriptor.get());
                return {.descriptor = std::move(descriptor), .why = {}};
            }
            connected.why += (connected.why.empty() ? "" : "; ") + text_of(address) + ": " + std::strerror(error);
        }
        // Processes retry at different times.
        std::this_thread::sleep_for(pause + milliseconds(seat % 50));
    }
    return connected;
}

}  // namespace strakes
