// Sends requests with libcurl, which keeps the connection open between requests and waits in poll().
#ifdef STRAKES_S3
#include "backend/s3_connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <regex>
#include <utility>

#include "backend/curl_library.hpp"

namespace strakes {

namespace {

constexpr long kConnectSeconds = 30;
// Maximum size of a response about the bucket (1000 keys have below 2 MiB), and about an object, which all ranks get.
constexpr std::size_t kMostList = std::size_t{16} << 20U, kMostText = std::size_t{64} << 10U;
// Time-out of a request with data: kMostSeconds, plus the duration of its data at kLeastBytesPerSecond.
constexpr long kMostSeconds = 600, kLeastBytesPerSecond = 100'000;
constexpr std::size_t kMostHeaders = std::size_t{1} << 20U;  // libcurl before 8.3 does not limit headers
constexpr long kUploadBuffer = 1L << 20U, kReceiveBuffer = 512L << 10U;

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
}

std::string now_text() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts);
    return text.data();
}

int error_of(CURLcode code) {
    switch (code) {
        case CURLE_COULDNT_CONNECT:
            return ECONNREFUSED;
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_RESOLVE_PROXY:
            return EHOSTUNREACH;
        case CURLE_OPERATION_TIMEDOUT:
            return ETIMEDOUT;
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CONNECT_ERROR:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_OUT_OF_MEMORY:  // libcurl also returns this error for a header line without an end.
            return EPROTO;
        default:
            return EIO;
    }
}

// Receives the body of a response: into the buffer `into` if the status is 2xx, otherwise into the text of the answer.
struct Receiver {
    CURL* handle;
    std::span<std::byte> into;
    S3Answer& answer;
    std::size_t most_text;
    std::size_t header_bytes = 0;

    static std::size_t take(const char* from, std::size_t /*one*/, std::size_t bytes, void* self) {
        auto& [handle, into, answer, most_text, header_bytes] = *static_cast<Receiver*>(self);
        if (answer.status == 0) curl().easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
        if (!into.empty() && answer.status / 100 == 2) {
            if (bytes > into.size() - answer.bytes) return 0;
            std::memcpy(into.data() + answer.bytes, from, bytes);
            answer.bytes += bytes;
        } else {
            if (bytes > most_text - answer.text.size()) return 0;
            answer.text.append(from, bytes);
        }
        return bytes;
    }
    static std::size_t look(const char* line, std::size_t /*one*/, std::size_t bytes, void* self) {
        Receiver& receiver = *static_cast<Receiver*>(self);
        if (receiver.header_bytes += bytes; receiver.header_bytes > kMostHeaders) return 0;
        for (const auto& [name, value] :
             {std::pair("etag:", &receiver.answer.tag), std::pair("content-range:", &receiver.answer.range),
              std::pair("x-amz-version-id:", &receiver.answer.version)}) {
            const std::size_t length = std::strlen(name);
            if (bytes < length || ::strncasecmp(line, name, length) != 0) continue;
            if (bytes > kMostValue) return 0;
            std::string_view header(line + length, bytes - length);
            while (!header.empty() && header.front() == ' ') header.remove_prefix(1);
            while (!header.empty() && static_cast<unsigned char>(header.back()) <= ' ') header.remove_suffix(1);
            *value = header;
        }
        return bytes;
    }
};

}  // namespace

S3Access S3Access::of_environment() {
    S3Access access{.endpoint = variable("AWS_ENDPOINT_URL"),
                    .host = {},
                    .bucket = variable("STRAKES_S3_BUCKET"),
                    .key = variable("AWS_ACCESS_KEY_ID"),
                    .secret = variable("AWS_SECRET_ACCESS_KEY"),
                    .token = variable("AWS_SESSION_TOKEN"),
                    .region = variable("AWS_REGION"),
                    .authorities = variable("AWS_CA_BUNDLE")};
    if (access.region.empty()) access.region = "us-east-1";
    while (access.endpoint.ends_with('/')) access.endpoint.pop_back();
    const std::size_t scheme = access.endpoint.find("://");
    access.host = scheme == std::string::npos ? access.endpoint : access.endpoint.substr(scheme + 3);
    return access;
}

std::string S3Access::lacking() {
    std::string names;
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "STRAKES_S3_BUCKET"})
        if (variable(name).empty()) names.append(names.empty() ? "" : ", ").append(name);
    return names;
}

std::string S3Access::wrong() {
    // Accepts names by the rules of S3, and by older rules that object gateways still accept.
    static const std::regex kAddress(R"(https?://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?)");
    static const std::regex kBucket("[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]");
    constexpr std::size_t kMostAddress = 300, kLeastBucket = 3, kMostBucket = 63;
    constexpr unsigned long kMostPort = 65535;
    const S3Access access = of_environment();
    std::smatch parts;
    if (access.endpoint.size() > kMostAddress || !std::regex_match(access.endpoint, parts, kAddress) ||
        (parts[2].matched && std::stoul(parts[2].str().substr(1)) > kMostPort))
        return "AWS_ENDPOINT_URL is not an address such as https://s3.example.org:8443";
    const std::string& bucket = access.bucket;
    if (bucket.size() < kLeastBucket || bucket.size() > kMostBucket || !std::regex_match(bucket, kBucket) ||
        bucket.find("..") != std::string::npos)
        return "STRAKES_S3_BUCKET is not the name of a bucket: 3 to 63 letters, digits, dots and hyphens";
    // A line end would end the header, so that the server takes the rest for other headers or another request.
    if (std::ranges::any_of(access.key + access.token + access.region, [](char c) { return c >= 0 && c < ' '; }))
        return "AWS_ACCESS_KEY_ID, AWS_SESSION_TOKEN or AWS_REGION has a line end or another control character";
    return {};
}

struct S3Connection::Curl {
    CURL* handle = nullptr;
    std::array<char, CURL_ERROR_SIZE> words{};

    Curl() {
        static const CURLcode kReady = curl().global_init(CURL_GLOBAL_DEFAULT);
        if (kReady == CURLE_OK) handle = curl().easy_init();
    }
    Curl(const Curl&) = delete;
    Curl& operator=(const Curl&) = delete;
    ~Curl() {
        if (handle != nullptr) curl().easy_cleanup(handle);
    }
};

S3Connection::S3Connection()
    : access_(S3Access::of_environment()),
      signer_(access_.key, access_.secret, access_.region),
      curl_(std::make_unique<Curl>()) {}

S3Connection::~S3Connection() = default;

S3Answer S3Connection::ask(Wish wish) {
    S3Answer answer;
    words_.clear();
    CURL* handle = curl_->handle;
    const long left = std::chrono::ceil<std::chrono::seconds>(until_ - std::chrono::steady_clock::now()).count();
    if (handle == nullptr || left <= 0) {
        words_ = handle == nullptr ? "libcurl cannot be used" : "the time for all requests is over";
        answer.error = handle == nullptr ? ENOMEM : ETIMEDOUT;
        return answer;
    }
    const std::string time = now_text();
    S3Request request{.method = wish.method,
                      .path = "/" + uri_encoded(access_.bucket + (wish.key.empty() ? "" : "/" + wish.key), true),
                      .query = std::move(wish.query),
                      .headers = std::move(wish.headers)};
    request.headers.emplace_back("host", access_.host);
    request.headers.emplace_back("x-amz-content-sha256", wish.digest);
    request.headers.emplace_back("x-amz-date", time);
    if (!access_.token.empty()) request.headers.emplace_back("x-amz-security-token", access_.token);
    const std::string authorization = signer_.authorization(request, time);

    curl_slist* lines = nullptr;
    for (const auto& [name, value] : request.headers) {
        std::string header = name;
        header.append(": ").append(value);
        lines = curl().slist_append(lines, header.c_str());
    }
    for (const std::string& line : {"authorization: " + authorization, std::string("expect:"),
                                    std::string("content-type: application/octet-stream")})
        lines = curl().slist_append(lines, line.c_str());
    std::string address = access_.endpoint + request.path;
    if (!request.query.empty()) address += "?" + query_text(request.query);

    curl().easy_reset(handle);  // easy_reset() keeps the connection open.
    const auto set = [handle](CURLoption option, auto value) { curl().easy_setopt(handle, option, value); };
    const std::size_t most_text = wish.key.empty() ? kMostList : kMostText;
    Receiver receiver{.handle = handle, .into = wish.into, .answer = answer, .most_text = most_text};
    curl_->words.front() = '\0';
    set(CURLOPT_URL, address.c_str());
    set(CURLOPT_HTTPHEADER, lines);
    set(CURLOPT_ERRORBUFFER, curl_->words.data());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_PATH_AS_IS, 1L);  // The signature covers the path, so libcurl must not change it.
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kMostSeconds);
    const auto data_bytes = static_cast<long>(wish.body.size() + wish.into.size());
    const long seconds = wish.most_seconds != 0 ? wish.most_seconds
                         : data_bytes == 0      ? kAnswerSeconds
                                                : kMostSeconds + data_bytes / kLeastBytesPerSecond;
    set(CURLOPT_TIMEOUT, std::min(seconds, left));
    set(CURLOPT_BUFFERSIZE, kReceiveBuffer);
    set(CURLOPT_UPLOAD_BUFFERSIZE, kUploadBuffer);
    set(CURLOPT_WRITEFUNCTION, &Receiver::take);
    set(CURLOPT_WRITEDATA, &receiver);
    set(CURLOPT_HEADERFUNCTION, &Receiver::look);
    set(CURLOPT_HEADERDATA, &receiver);
    if (!access_.authorities.empty()) set(CURLOPT_CAINFO, access_.authorities.c_str());
    const std::string method(wish.method);
    if (method == "HEAD") {
        set(CURLOPT_NOBODY, 1L);
    } else if (method != "GET") {
        set(CURLOPT_POST, 1L);
        set(CURLOPT_POSTFIELDS, wish.body.empty() ? "" : reinterpret_cast<const char*>(wish.body.data()));
        set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(wish.body.size()));
        set(CURLOPT_CUSTOMREQUEST, method.c_str());
    }
    const CURLcode code = curl().easy_perform(handle);
    curl().slist_free_all(lines);
    if (code != CURLE_OK) {
        answer.error = error_of(code);
        words_ = code == CURLE_OUT_OF_MEMORY
                     ? "the server's header does not end"
                     : std::string("libcurl says: ") +
                           (curl_->words.front() != '\0' ? curl_->words.data() : curl().easy_strerror(code));
        return answer;
    }
    curl().easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
    // CompleteMultipartUpload may report an error after it has sent status 200.
    const bool late = answer.status == 200 && answer.text.find("<Error>") != std::string::npos;
    if (answer.status / 100 == 2 && !late) return answer;
    answer.error = error_of_status(answer.status, answer.text);
    words_ = server_words(answer.status, answer.text);
    return answer;
}

S3Answer S3Connection::put(const std::string& key, std::span<const std::byte> body) {
    return ask({.method = "PUT", .key = key, .body = body});
}

S3Answer S3Connection::list(const std::string& prefix, std::string& mark, std::vector<std::string>& keys,
                            std::uint32_t most) {
    NamedTexts query{{"list-type", "2"}, {"max-keys", std::to_string(most)}};
    if (!mark.empty()) query.emplace_back("continuation-token", mark);
    S3Answer answer = ask_list(std::move(query), prefix, "ListBucketResult", "Contents");
    const std::string before = std::exchange(mark, {});
    if (answer.error != 0) return answer;
    for (const std::string_view object : xml_elements(answer.text, "Contents")) keys.push_back(xml_text(object, "Key"));
    if (xml_text(answer.text, "IsTruncated") != "true") return answer;
    mark = xml_text(answer.text, "NextContinuationToken");
    if (mark.empty() || mark == before) {
        words_ = kEndless;
        answer.error = EPROTO;
    }
    return answer;
}

// Checks that the response is a list, because a proxy or a captive portal may answer any request with another page.
S3Answer S3Connection::ask_list(NamedTexts query, const std::string& prefix, const char* root, const char* element) {
    query.emplace_back("prefix", prefix);
    S3Answer answer = ask({.method = "GET", .key = {}, .query = std::move(query)});
    if (answer.error != 0 || (answer.status == 200 && xml_is_list(answer.text, root, element, prefix))) return answer;
    words_ = "the answer is no whole list of S3";
    answer.error = EPROTO;
    return answer;
}

}  // namespace strakes
#endif
