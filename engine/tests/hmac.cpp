// Test vectors of FIPS 180-4 (NIST's examples for SHA-256) and RFC 4231.
#include "system/hmac.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace strakes;

namespace {

std::string hex(const Digest& digest) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : digest) {
        text += kDigits[byte >> 4U];
        text += kDigits[byte & 15U];
    }
    return text;
}

}  // namespace

TEST_CASE("SHA-256 agrees with NIST's examples") {
    CHECK(hex(sha256("")) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(hex(sha256("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(hex(sha256(std::string(1'000'000, 'a'))) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the padding is correct for every length around a block") {
    // Compare one digest over the digests of all lengths, computed with Python's hashlib.
    std::string all;
    for (std::size_t length = 0; length < 200; ++length) all += hex(sha256(std::string(length, 'x')));
    CHECK(hex(sha256(all)) == "f61ffcc417e1f0e59eba2da7fa32fbe05b64e478b68c6bacf990455f00248b98");
}

TEST_CASE("HMAC agrees with RFC 4231") {
    CHECK(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CHECK(hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CHECK(hex(hmac_sha256(std::string(20, '\xaa'), std::string(50, '\xdd'))) ==
          "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    CHECK(hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")) ==
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("proofs are equal only if every byte is") {
    const Digest proof = sha256("a");
    CHECK(same_proof(proof, proof));
    CHECK_FALSE(same_proof(proof, std::span(proof).first(31)));
    for (std::size_t i = 0; i < proof.size(); ++i) {
        Digest other = proof;
        other[i] ^= 1U;
        CHECK_FALSE(same_proof(proof, other));
    }
}
