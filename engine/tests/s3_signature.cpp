// The examples and keys that AWS publishes:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html.
#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "backend/s3_text.hpp"

using namespace strakes;

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
