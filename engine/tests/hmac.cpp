// HMAC and signatures of S3 requests, compared with published test vectors.
#include "system/hmac.hpp"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "backend/s3_connection.hpp"

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
    // Compare one digest over the digests of texts of all lengths, computed with Python's hashlib.
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

namespace {

constexpr std::string_view kTime = "20130524T000000Z";
constexpr std::string_view kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string signature_of(S3Request request, std::string_view body = kEmpty) {
    S3Signer signer("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1");
    request.headers.emplace_back("host", "examplebucket.s3.amazonaws.com");
    request.headers.emplace_back("x-amz-content-sha256", body);
    request.headers.emplace_back("x-amz-date", kTime);
    const std::string value = signer.authorization(request, kTime);
    CHECK(value.starts_with(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders="));
    return value.substr(value.rfind('=') + 1);
}

}  // namespace

TEST_CASE("requests are signed as in AWS's examples") {
    CHECK(signature_of({.method = "GET", .path = "/test.txt", .query = {}, .headers = {{"range", "bytes=0-9"}}}) ==
          "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    CHECK(signature_of(
              {.method = "PUT",
               .path = uri_encoded("/test$file.text", true),
               .query = {},
               .headers = {{"x-amz-storage-class", "REDUCED_REDUNDANCY"}, {"date", "Fri, 24 May 2013 00:00:00 GMT"}}},
              hex_sha256("Welcome to Amazon S3.")) ==
          "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    CHECK(signature_of({.method = "GET", .path = "/", .query = {{"lifecycle", ""}}, .headers = {}}) ==
          "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    CHECK(signature_of({.method = "GET", .path = "/", .query = {{"prefix", "J"}, {"max-keys", "2"}}, .headers = {}}) ==
          "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST_CASE("a new day has a new signing key") {
    S3Signer lasting("A", "B", "c");
    S3Request request{.method = "GET", .path = "/", .query = {}, .headers = {}};
    static_cast<void>(lasting.authorization(request, "20260101T235959Z"));
    S3Signer fresh("A", "B", "c");
    CHECK(lasting.authorization(request, "20260102T000000Z") == fresh.authorization(request, "20260102T000000Z"));
}

TEST_CASE("reserved characters are encoded, and query parameters are sorted by name") {
    CHECK(uri_encoded("a b/~-._%+\xc3\xa4", true) == "a%20b/~-._%25%2B%C3%A4");
    CHECK(uri_encoded("a/b", false) == "a%2Fb");
    CHECK(query_text({{"uploadId", "x=/"}, {"partNumber", "2"}}) == "partNumber=2&uploadId=x%3D%2F");
}

TEST_CASE("the server's message is shown without control characters") {
    const std::string document =
        "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>gone &amp; \x1b[2J lost</Message></Error>";
    CHECK(server_words(404, document) == "the server says: status 404, NoSuchKey: gone &  [2J lost");
    CHECK(server_words(502, "<html>") == "the server says: status 502");
    CHECK(server_words(403, "<Code>" + std::string(10'000, 'x') + "</Code>").size() < 400);
    CHECK(error_of_status(404, document) == ENOENT);
    CHECK(error_of_status(403, "<Code>QuotaExceeded</Code>") == EDQUOT);
    CHECK(error_of_status(200, "<Error>") == EIO);
    CHECK(error_of_status(599, "") == EIO);
}

TEST_CASE("XML elements are found, also if the last one is truncated") {
    CHECK(xml_elements("<Key>a</Key><Key>b</Key><Key>c", "Key").size() == 2);
    CHECK(xml_text("<K>&lt;a&gt;&amp;lt;</K>", "K") == "<a>&lt;");
    CHECK(xml_text("<K></K>", "M").empty());
    CHECK(xml_text("<K>" + xml_escaped("a<b>&\"") + "</K>", "K") == "a<b>&\"");
}

TEST_CASE("only a whole list below the prefix is a list") {
    const auto is_list = [](const std::string& inside, const std::string& after = "</L>\n") {
        return xml_is_list("<?xml version=\"1.0\"?><L xmlns=\"x\">" + inside + after, "L", "C", "p/");
    };
    const std::string last = "<IsTruncated>false</IsTruncated>";
    CHECK(is_list(last));
    CHECK(is_list("<C><Key>p/a&amp;b</Key><CId>1</CId><ETag>&#34;&#x1;</ETag></C><C><Key>p/b</Key></C>" + last));
    CHECK_FALSE(is_list(last, ""));
    CHECK_FALSE(is_list(""));
    CHECK_FALSE(is_list("<IsTruncated>maybe</IsTruncated>"));
    for (const char* item : {"<C><Key>p/a", "<C/>", "<C></C>", "<C><Key>q/a</Key></C>", "<C><Key>p/&a;</Key></C>", "&",
                             "<C><C><Key>p/a</Key></C></C>", "<!-- -->", "<C a=\"b\"><Key>p/a</Key></C>"})
        CHECK_FALSE(is_list(last + item));
}
