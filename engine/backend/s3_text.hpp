// Parses the XML responses of object stores.
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

// Returns the text of the first element with that name, its entities resolved; empty if the document has none.
[[nodiscard]] std::string xml_text(std::string_view document, std::string_view element);
// Returns the contents of all elements with that name.
[[nodiscard]] std::vector<std::string_view> xml_elements(std::string_view document, std::string_view element);
// Escapes text for an element.
[[nodiscard]] std::string xml_escaped(std::string_view text);

// Returns a line with the server's status, code and message, shortened and without control characters.
[[nodiscard]] std::string server_words(long status, std::string_view document);
// Returns the error number closest to the server's status.
[[nodiscard]] int error_of_status(long status, std::string_view document);

}  // namespace strakes
