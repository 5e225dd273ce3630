// A persistent connection to an object store, which signs requests and sends them one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/file.hpp"
#include "backend/s3_text.hpp"

namespace strakes {

// Endpoint, bucket and credentials, from the environment only, never from a plan or the command line.
struct S3Access {
    std::string endpoint, host, bucket, key, secret, token, region, authorities;

    [[nodiscard]] static S3Access of_environment();
    // Returns the names of the missing variables, separated by commas; empty if all are set.
    [[nodiscard]] static std::string lacking();
    // Returns why the endpoint or the bucket is not valid; empty if both are.
    [[nodiscard]] static std::string wrong();
};

struct S3Answer {
    int error = 0;  // an error number; 0 if the request succeeded
    long status = 0;
    std::size_t bytes = 0;  // received into the buffer
    std::string text;       // the body that is not in the buffer
    std::string tag;        // ETag of the object or part
};

// Time-out for a page of 1000 keys. Gateways with full indexes need up to 20 s.
inline constexpr long kPageSeconds = 60;

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
        std::string key;  // of an object; empty: the bucket
        NamedTexts query = {};
        NamedTexts headers = {};
        std::span<const std::byte> body = {};
        std::string_view digest = kUnsignedBody;
        std::span<std::byte> into = {};  // receives the body
        long most_seconds = 0;           // time-out; 0: derived from the size of the data
    };
    // NOLINTEND(readability-redundant-member-init)
    // Sends a request and sleeps until the response is complete.
    [[nodiscard]] S3Answer ask(Wish wish);

    // Returns the message of the server or of libcurl about the last request; empty if it succeeded.
    [[nodiscard]] const std::string& words() const noexcept { return words_; }

    [[nodiscard]] S3Answer put(const std::string& key, std::span<const std::byte> body);
    // Appends a page of the keys below a prefix to `keys`, from `mark` on. Sets `mark` to the start of the next page,
    // empty at the end. Fails with EPROTO if the server announces another page without a new mark.
    [[nodiscard]] S3Answer list(const std::string& prefix, std::string& mark, std::vector<std::string>& keys,
                                std::uint32_t most = 1000);

    // Sets EPROTO if the response is not a list of objects or uploads.
    void require_list(S3Answer& answer);

  private:
    struct Curl;
    const S3Access access_;
    S3Signer signer_;
    std::unique_ptr<Curl> curl_;
    std::string words_;
};

}  // namespace strakes
