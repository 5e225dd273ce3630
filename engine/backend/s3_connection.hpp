// One connection to an object store that is kept open: requests signed and sent one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/file.hpp"
#include "backend/s3_signature.hpp"

namespace strakes {

// Where the objects go and who may write them, from the environment alone: no plan, record or command line has it.
struct S3Access {
    std::string endpoint, host, bucket, key, secret, token, region, authorities;

    [[nodiscard]] static S3Access of_environment();
    // The variables that are missing, with commas between them; empty where there is all.
    [[nodiscard]] static std::string lacking();
    // Why the address or the bucket is none, empty where they may be.
    [[nodiscard]] static std::string wrong();
};

struct S3Answer {
    int error = 0;  // an error number; 0 where the store did what was asked for
    long status = 0;
    std::size_t bytes = 0;  // received into the buffer
    std::string text;       // what else was received
    std::string tag;        // of the object or part (ETag)
};

// A page of 1000 keys; gateways with full indexes need up to 20 s.
inline constexpr long kPageSeconds = 60;

inline constexpr const char* kEndless = "the server's list does not end";

class S3Connection {
  public:
    S3Connection();
    S3Connection(const S3Connection&) = delete;
    S3Connection& operator=(const S3Connection&) = delete;
    ~S3Connection();

    // GCC warns of members that a wish does not name and that have no value here.
    // NOLINTBEGIN(readability-redundant-member-init)
    struct Wish {
        std::string_view method;
        std::string key;  // of an object; empty: the bucket
        NamedTexts query = {};
        NamedTexts headers = {};
        std::span<const std::byte> body = {};
        std::string_view digest = kUnsignedBody;
        std::span<std::byte> into = {};  // what comes is to go there
        long most_seconds = 0;           // until the answer is complete; 0: as long as its size allows
    };
    // NOLINTEND(readability-redundant-member-init)
    // Waits for the answer, asleep.
    [[nodiscard]] S3Answer ask(Wish wish);

    // What the server or the library said of the last request that failed.
    [[nodiscard]] const std::string& words() const noexcept { return words_; }

    [[nodiscard]] S3Answer put(const std::string& key, std::span<const std::byte> body);
    // The keys below a prefix from a mark on, one page of them; `mark` is then where the next begins, empty at the end.
    // A server that says that there is more, but not where, or where we have been already, has failed.
    [[nodiscard]] S3Answer list(const std::string& prefix, std::string& mark, std::vector<std::string>& keys,
                                std::uint32_t most = 1000);

    // Makes an error of an answer that is no list of objects or uploads.
    void require_list(S3Answer& answer);

  private:
    struct Curl;
    const S3Access access_;
    S3Signer signer_;
    std::unique_ptr<Curl> curl_;
    std::string words_;
};

}  // namespace strakes
