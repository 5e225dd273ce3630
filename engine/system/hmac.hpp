// Proofs that somebody knows a secret: HMAC (RFC 2104) with SHA-256 (FIPS 180-4). Written out here, since the engine is
// to need no library for one message at its start; held to the published examples by engine/tests/hmac.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace strakes {

using Digest = std::array<std::uint8_t, 32>;

[[nodiscard]] Digest sha256(std::string_view text);
[[nodiscard]] Digest hmac_sha256(std::string_view key, std::string_view text);

// Takes as long whatever they differ in.
[[nodiscard]] bool same_proof(std::span<const std::uint8_t> one, std::span<const std::uint8_t> other) noexcept;

}  // namespace strakes
