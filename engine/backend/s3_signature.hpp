// How requests to an object store are signed: AWS signature version 4
// (https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strakes {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// In place of the digest of a body that is not read twice.
inline constexpr std::string_view kUnsignedBody = "UNSIGNED-PAYLOAD";

struct S3Request {
    std::string_view method;
    std::string path;    // encoded
    NamedTexts query;    // as they are
    NamedTexts headers;  // names in small letters; host, x-amz-date and x-amz-content-sha256 are among them
};

class S3Signer {
  public:
    S3Signer(std::string key, std::string secret, std::string region)
        : key_(std::move(key)), secret_(std::move(secret)), region_(std::move(region)) {}

    // The value of the header Authorization. `time` is 20130524T000000Z; sorts the headers.
    [[nodiscard]] std::string authorization(S3Request& request, std::string_view time);

  private:
    std::string key_, secret_, region_;
    std::string day_, key_of_day_;
};

// All but letters, digits and -._~ (and /, where it stays) as %XX.
[[nodiscard]] std::string uri_encoded(std::string_view text, bool keep_slash);
// Encoded and in the order in which it is signed.
[[nodiscard]] std::string query_text(const NamedTexts& query);
[[nodiscard]] std::string hex_sha256(std::string_view text);

}  // namespace strakes
