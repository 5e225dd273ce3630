// Signs requests to an object store with AWS signature version 4
// (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strakes {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Replaces the digest of a body, which would take a second pass over the data.
inline constexpr std::string_view kUnsignedBody = "UNSIGNED-PAYLOAD";

struct S3Request {
    std::string_view method;
    std::string path;    // encoded
    NamedTexts query;    // not encoded
    NamedTexts headers;  // lower-case names, with host, x-amz-date and x-amz-content-sha256
};

class S3Signer {
  public:
    S3Signer(std::string key, std::string secret, std::string region)
        : key_(std::move(key)), secret_(std::move(secret)), region_(std::move(region)) {}

    // Returns the value of the Authorization header. `time` has the form 20130524T000000Z. Sorts the headers.
    [[nodiscard]] std::string authorization(S3Request& request, std::string_view time);

  private:
    std::string key_, secret_, region_;
    std::string day_, key_of_day_;
};

// Encodes all characters but letters, digits and -._~ (and / with `keep_slash`) as %XX.
[[nodiscard]] std::string uri_encoded(std::string_view text, bool keep_slash);
// Returns the query encoded and sorted, as it is signed.
[[nodiscard]] std::string query_text(const NamedTexts& query);
[[nodiscard]] std::string hex_sha256(std::string_view text);

}  // namespace strakes
