// HMAC (RFC 2104) with SHA-256 (FIPS 180-4), for proofs of a shared secret and for signatures of S3 requests.
// Implemented here so that the engine needs no cryptographic library; engine/tests/hmac.cpp checks the published test
// vectors.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace strakes {

using Digest = std::array<std::uint8_t, 32>;

[[nodiscard]] Digest sha256(std::string_view text);
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view text);

// Compare in constant time.
[[nodiscard]] bool same_proof(std::span<const std::uint8_t> one, std::span<const std::uint8_t> other) noexcept;

}  // namespace strakes
