// Mutual authentication of two processes that share a secret, on a connection that anybody may have opened. Each side
// sends a random nonce and an HMAC over both nonces. The secret never goes over the connection.
//
//     process -> exchange   Greeting: rank and nonce of the process
//     exchange -> process   nonce of the exchange
//     process -> exchange   proof of the process
//     exchange -> process   proof of the exchange; the connection is now authenticated
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "system/hmac.hpp"

namespace strakes {

using Secret = std::array<std::uint8_t, 32>;
using Nonce = std::array<std::uint8_t, 32>;

struct Greeting {
    std::uint32_t rank;
    Nonce nonce;
};

enum class Side : std::uint8_t { process, exchange };

// Returns nothing if the system has no random numbers.
[[nodiscard]] std::optional<Nonce> make_nonce();

[[nodiscard]] Digest proof_of(Side side, const Secret& secret, const Greeting& greeting, const Nonce& answer);

// Performs the process's part of the authentication on a non-blocking connection, in at most `limit_ms` milliseconds.
// Returns 0, an error number, or ECONNREFUSED if the exchange does not know the secret or closes the connection.
[[nodiscard]] int prove_to_exchange(int descriptor, const Secret& secret, std::uint32_t rank, int limit_ms);

}  // namespace strakes
