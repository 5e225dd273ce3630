// A persistent connection to an object store, which signs requests and sends them one after another.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/file.hpp"

namespace strakes {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Sent in place of the digest of a body, because computing the digest would take a second pass over the data.
inline constexpr std::string_view kUnsignedBody = "UNSIGNED-PAYLOAD";

struct S3Request {
    std::string_view method;
    std::string path;    // URL-encoded path
    NamedTexts query;    // names and values, not encoded
    NamedTexts headers;  // names in lower case; include host, x-amz-date and x-amz-content-sha256
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
// Returns the query, encoded and sorted as the signature requires.
[[nodiscard]] std::string query_text(const NamedTexts& query);
[[nodiscard]] std::string hex_sha256(std::string_view text);

// Returns the text of the first element with that name, with entities resolved, or "" if the element is missing.
[[nodiscard]] std::string xml_text(std::string_view document, std::string_view element);
[[nodiscard]] std::vector<std::string_view> xml_elements(std::string_view document, std::string_view element);
// Returns whether the document is a complete S3 list: it has this root element, states whether more pages follow, has
// no declarations or unknown entities, and the key of every `element` begins with the prefix.
[[nodiscard]] bool xml_is_list(std::string_view document, const std::string& root, std::string_view element,
                               std::string_view prefix);
[[nodiscard]] std::string xml_escaped(std::string_view text);

// Returns a line with the server's status, code and message, shortened and without control characters.
[[nodiscard]] std::string server_words(long status, std::string_view document);
[[nodiscard]] int error_of_status(long status, std::string_view document);

// Endpoint, bucket and credentials, from the environment only, never from a plan or the command line.
struct S3Access {
    std::string endpoint, host, bucket, key, secret, token, region, authorities;

    [[nodiscard]] static S3Access of_environment();
    // Returns the names of the missing variables, separated by commas; empty if all are set.
    [[nodiscard]] static std::string lacking();
    // Returns why the endpoint or the bucket is not valid; empty if both are valid.
    [[nodiscard]] static std::string wrong();
};

struct S3Answer {
    int error = 0;
    long status = 0;
    std::size_t bytes = 0;  // number of bytes received into the buffer
    std::string text;       // body of the response, if it is not in the buffer
    std::string tag;        // ETag of the object or part
    std::string range;      // Content-Range: which bytes of the object are in the body
    std::string version;    // version id of the object, if the bucket keeps old versions
};

// Time-out of a request without data, such as a list of 1000 keys. Gateways with full indexes take up to 20 s.
inline constexpr long kAnswerSeconds = 60;

// Maximum length of a stored ETag or id of an upload; they have 40 to 150 characters.
inline constexpr std::size_t kMostValue = 1024;
inline constexpr const char* kEndless = "the server's list does not end";

class S3Connection {
  public:
    S3Connection();
    S3Connection(const S3Connection&) = delete;
    S3Connection& operator=(const S3Connection&) = delete;
    ~S3Connection();

    // GCC warns about members that an initialiser omits and that have no default here.
    // NOLINTBEGIN(readability-redundant-member-init)
    struct Wish {
        std::string_view method;
        std::string key;  // key of an object; empty if the request concerns the bucket
        NamedTexts query = {};
        NamedTexts headers = {};
        std::span<const std::byte> body = {};
        std::string_view digest = kUnsignedBody;
        std::span<std::byte> into = {};  // buffer that receives the body
        long most_seconds = 0;           // time-out; 0: derived from the size of the data
    };
    // NOLINTEND(readability-redundant-member-init)
    // Sets a common deadline for all further requests. Requests after the deadline fail with ETIMEDOUT.
    void end_at(std::chrono::steady_clock::time_point until) noexcept { until_ = until; }
    [[nodiscard]] S3Answer ask(Wish wish);

    // Returns the message of the server or of libcurl about the last request; empty if the request succeeded.
    [[nodiscard]] const std::string& words() const noexcept { return words_; }

    [[nodiscard]] S3Answer put(const std::string& key, std::span<const std::byte> body);
    // Appends a page of the keys below a prefix, starting at `mark`, to `keys`. Sets `mark` to the start of the next
    // page, or to "" after the last page. Fails with EPROTO if the server announces another page without a new mark.
    [[nodiscard]] S3Answer list(const std::string& prefix, std::string& mark, std::vector<std::string>& keys,
                                std::uint32_t most = 1000);

    // Requests a list of `element` below a prefix. Fails with EPROTO if the response is not a whole list.
    [[nodiscard]] S3Answer ask_list(NamedTexts query, const std::string& prefix, const char* root, const char* element);

  private:
    struct Curl;
    const S3Access access_;
    S3Signer signer_;
    std::unique_ptr<Curl> curl_;
    std::string words_;
    std::chrono::steady_clock::time_point until_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace strakes
