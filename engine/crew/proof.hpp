// How two processes that were told one secret prove it to each other on a connection that anybody may have made: each
// makes up a number, and says HMAC over both with the secret. The secret itself never goes over the connection.
//
//     process -> exchange   Greeting: its rank, its number
//     exchange -> process   its number
//     process -> exchange   proof of the process
//     exchange -> process   proof of the exchange; from now on the connection is one
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

// None when the system has no random numbers.
[[nodiscard]] std::optional<Nonce> make_nonce();

// What `side` says of itself.
[[nodiscard]] Digest proof_of(Side side, const Secret& secret, const Greeting& greeting, const Nonce& answer);

// The process's part, on a connection that does not block: 0, or the error number (ECONNREFUSED: the other side does
// not know the secret). Nothing is waited for longer than `limit_ms` in all.
[[nodiscard]] int prove_to_exchange(int descriptor, const Secret& secret, std::uint32_t rank, int limit_ms);

}  // namespace strakes
