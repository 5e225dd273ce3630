// Computes proofs by HMAC (RFC 2104) over nonces from getrandom(2).
#include "crew/proof.hpp"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <string_view>

#include "system/bytes.hpp"

namespace strakes {

namespace {

using Time = std::chrono::steady_clock;

std::string_view bytes_of(const Secret& secret) {
    return {reinterpret_cast<const char*>(secret.data()), secret.size()};
}

template <class Value>
int say(int descriptor, const Value& value) {
    const ssize_t size = ::send(descriptor, &value, sizeof value, MSG_NOSIGNAL);
    if (size == static_cast<ssize_t>(sizeof value)) return 0;
    return size < 0 ? errno : EAGAIN;  // EAGAIN: the peer does not read.
}

template <class Value>
int hear(int descriptor, Value& value, Time::time_point until) {
    std::size_t heard = 0;
    while (heard < sizeof value) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Time::now()).count();
        pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
        const int events = ::poll(&ready, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
        if (events < 0 && errno == EINTR) continue;
        if (events <= 0) return events < 0 ? errno : ETIMEDOUT;
        const ssize_t size = ::recv(descriptor, reinterpret_cast<char*>(&value) + heard, sizeof value - heard, 0);
        if (size == 0) return ECONNREFUSED;
        if (size < 0 && errno != EINTR && errno != EAGAIN) return errno;
        if (size > 0) heard += static_cast<std::size_t>(size);
    }
    return 0;
}

}  // namespace

std::optional<Nonce> make_nonce() {
    Nonce nonce{};
    if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) return std::nullopt;
    return nonce;
}

Digest proof_of(Side side, const Secret& secret, const Greeting& greeting, const Nonce& answer) {
    Packer packer;
    packer.put(side);
    packer.put(greeting.rank);
    packer.put(greeting.nonce);
    packer.put(answer);
    return hmac_sha256(bytes_of(secret), packer.take());
}

int prove_to_exchange(int descriptor, const Secret& secret, std::uint32_t rank, int limit_ms) {
    const auto until = Time::now() + std::chrono::milliseconds(limit_ms);
    const std::optional<Nonce> nonce = make_nonce();
    if (!nonce) return errno;
    const Greeting greeting{.rank = rank, .nonce = *nonce};
    Nonce answer{};
    Digest proof{};
    int error = say(descriptor, greeting);
    if (error == 0) error = hear(descriptor, answer, until);
    if (error == 0) error = say(descriptor, proof_of(Side::process, secret, greeting, answer));
    if (error == 0) error = hear(descriptor, proof, until);
    if (error != 0) return error;
    return same_proof(proof, proof_of(Side::exchange, secret, greeting, answer)) ? 0 : ECONNREFUSED;
}

}  // namespace strakes
