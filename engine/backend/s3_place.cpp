// Creates and empties a plan's prefix. Each step opens a new connection, because the steps run in different threads.
#ifdef STRAKES_S3
#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>

#include "backend/s3.hpp"
#include "backend/s3_connection.hpp"
#include "system/hmac.hpp"
#include "system/queries.hpp"

namespace strakes {

namespace {

constexpr const char* kMarkerName = ".strakes-marker";
constexpr const char* kKeepsVersions = "the bucket keeps old versions of removed objects";
constexpr const char* kNotRemoved = "objects could not be removed";
// Maximum numbers of pages of 1000 keys, in case a server's list does not end: 100 consecutive pages without a key of
// the plan, pages with 100 million objects, and pages with a million uploads.
constexpr unsigned kMostUseless = 100, kMostPages = 100'000, kMostRounds = 1000;
// Maximum number of passes of the removal. One pass may not suffice, because a server's list may lack new objects.
constexpr unsigned kMostPasses = 3;

std::string& plan_prefix() {
    static std::string prefix;
    return prefix;
}

std::string prefix_of(const std::string& directory, const std::string& id) {
    std::string path = directory;
    while (path.ends_with('/')) path.pop_back();
    return path.substr(path.rfind('/') + 1) + "/" + id + "/";
}

std::string shown(const std::string& key) { return "s3://" + S3Access::of_environment().bucket + "/" + key; }

Failure failure_of(const char* call, const S3Connection& connection, int error, const std::string& key,
                   std::string what, const std::string& why = {}) {
    Failure failure = call_failure(call, shown(key), error);
    failure.what = std::move(what);
    failure.why = why.empty() ? failure.why + " (" + connection.words() + ")" : why;
    failure.remedy =
        "Check AWS_ENDPOINT_URL, AWS_REGION, STRAKES_S3_BUCKET and the keys, and that they may read, write, list and "
        "delete in the bucket.";
    return failure;
}

std::string base64(const Digest& digest) {
    constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t at = 0; at < digest.size(); at += 3) {
        unsigned bits = 0;
        for (std::size_t i = 0; i < 3; ++i) bits = bits << 8U | (at + i < digest.size() ? digest[at + i] : 0U);
        for (std::size_t i = 0; i < 4; ++i) text += at + i > digest.size() ? '=' : kLetters[bits >> (18 - 6 * i) & 63U];
    }
    return text;
}

// Removes the objects by one request, or one by one if the store refuses this request. Returns 0 or an error number.
int remove_keys(S3Connection& connection, const std::vector<std::string>& keys) {
    std::string body = "<Delete><Quiet>true</Quiet>";
    for (const std::string& key : keys) body += "<Object><Key>" + xml_escaped(key) + "</Key></Object>";
    body += "</Delete>";
    const std::string digest = hex_sha256(body);
    const S3Answer together = connection.ask({.method = "POST",
                                              .key = {},
                                              .query = {{"delete", ""}},
                                              .headers = {{"x-amz-checksum-sha256", base64(sha256(body))}},
                                              .body = std::as_bytes(std::span(body)),
                                              .digest = digest,
                                              .most_seconds = 2 * kAnswerSeconds});
    if (together.error == 0 || together.error == ETIMEDOUT) return together.error;
    for (const std::string& key : keys) {
        if (const S3Answer one = connection.ask({.method = "DELETE", .key = key});
            one.error != 0 && one.error != ENOENT)
            return one.error;
    }
    return 0;
}

std::optional<Failure> end_uploads(S3Connection& connection, const std::string& prefix, std::uint64_t& found) {
    for (unsigned round = 0; round < kMostRounds; ++round) {
        const S3Answer answer = connection.ask_list({{"uploads", ""}}, prefix, "ListMultipartUploadsResult", "Upload");
        if (answer.error != 0)
            return failure_of("ListMultipartUploads", connection, answer.error, prefix, "uploads cannot be listed");
        const auto uploads = xml_elements(answer.text, "Upload");
        for (const std::string_view upload : uploads) {
            const std::string key = xml_text(upload, "Key");
            ++found;
            const S3Answer ended =
                connection.ask({.method = "DELETE", .key = key, .query = {{"uploadId", xml_text(upload, "UploadId")}}});
            if (ended.error != 0 && ended.error != ENOENT)
                return failure_of("AbortMultipartUpload", connection, ended.error, key, "an upload cannot be ended");
        }
        if (xml_text(answer.text, "IsTruncated") != "true") return std::nullopt;
        if (uploads.empty()) break;
    }
    return failure_of("ListMultipartUploads", connection, EPROTO, prefix, "uploads cannot be listed", kEndless);
}

// Removes the objects below the prefix, except the marker, and adds their number to `found`. Fails if the list lacks
// the marker, because then it may lack other objects, too.
std::optional<Failure> remove_listed(S3Connection& connection, const std::string& prefix, const std::string& marker,
                                     std::uint64_t& found) {
    unsigned useless = 0, pages = 0;
    bool marked = false;
    for (std::string mark;;) {
        std::vector<std::string> keys;
        if (const S3Answer answer = connection.list(prefix, mark, keys); answer.error != 0)
            return failure_of("ListObjectsV2", connection, answer.error, prefix, kNotRemoved);
        if (std::erase(keys, marker) > 0) marked = true;
        if (!keys.empty())
            if (const int error = remove_keys(connection, keys); error != 0)
                return failure_of("DELETE", connection, error, prefix, kNotRemoved);
        found += keys.size();
        if (mark.empty() && marked) return std::nullopt;
        useless = keys.empty() ? useless + 1 : 0;
        if (mark.empty() || useless > kMostUseless || ++pages > kMostPages)
            return failure_of("ListObjectsV2", connection, EPROTO, prefix, kNotRemoved,
                              mark.empty() ? "the store lists no marker although it has one" : kEndless);
    }
}

}  // namespace

const std::string& S3Place::of_plan() noexcept { return plan_prefix(); }

std::string S3Place::marker() { return of_plan() + kMarkerName; }

std::string S3Place::note() {
    const S3Access access = S3Access::of_environment();
    return nlohmann::json{{"endpoint", access.endpoint}, {"bucket", access.bucket}, {"prefix", of_plan()}}.dump();
}

void S3Place::choose(const std::string& directory, const std::string& id) { plan_prefix() = prefix_of(directory, id); }

std::optional<Failure> S3Place::look() {
    S3Connection connection;
    std::string mark;
    std::vector<std::string> keys;
    if (const S3Answer answer = connection.list(of_plan(), mark, keys, 1); answer.error != 0)
        return failure_of("ListObjectsV2", connection, answer.error, of_plan(), "the object store cannot be used");
    if (!keys.empty()) {
        Failure failure = call_failure("ListObjectsV2", shown(of_plan()), EEXIST);
        failure.what = "the prefix of the plan's objects is already in use";
        failure.remedy = "Use another id or directory. strakes does not change other objects.";
        return failure;
    }
    return std::nullopt;
}

std::optional<Failure> S3Place::make() {
    S3Connection connection;
    const std::string text = nlohmann::json{{"made_by", "strakes"}, {"host", host_name()}}.dump();
    constexpr const char* kNotMade = "the plan's objects cannot be made";
    const S3Answer answer = connection.put(marker(), std::as_bytes(std::span(text)));
    if (answer.error != 0) return failure_of("PUT", connection, answer.error, marker(), kNotMade);
    if (answer.version.empty()) return std::nullopt;
    const S3Answer gone =
        connection.ask({.method = "DELETE", .key = marker(), .query = {{"versionId", answer.version}}});
    Failure failure = failure_of("PUT", connection, EOPNOTSUPP, marker(), kNotMade,
                                 std::string(kKeepsVersions) + (gone.error == 0 ? "" : ", also of this one"));
    failure.remedy = "Use a bucket without versioning.";
    return failure;
}

std::optional<Failure> S3Place::join() {
    S3Connection connection;
    const S3Answer answer = connection.ask({.method = "HEAD", .key = marker()});
    if (answer.error == 0) return std::nullopt;
    return failure_of("HEAD", connection, answer.error, marker(), "a node does not see the objects of another node");
}

std::optional<Failure> S3Place::empty(std::atomic<std::uint64_t>& removed) {
    const std::string& prefix = of_plan();
    S3Connection connection;
    connection.end_at(std::chrono::steady_clock::now() + std::chrono::hours(1));
    const S3Answer there = connection.ask({.method = "HEAD", .key = marker()});
    const bool hidden = there.error == EACCES;  // A key that may not read gets 403 also for a missing object.
    if (there.error == ENOENT || hidden) {
        std::string mark;
        std::vector<std::string> keys;
        if (const S3Answer answer = connection.list(prefix, mark, keys, 1); answer.error != 0)
            return failure_of("ListObjectsV2", connection, answer.error, prefix, kNotRemoved);
        if (keys.empty()) return std::nullopt;
        return failure_of("HEAD", connection, there.error, marker(), kNotRemoved,
                          hidden ? "objects are listed, but the key may not read them"
                                 : "objects are listed, but not the one that marks them as made by strakes");
    }
    if (there.error != 0) return failure_of("HEAD", connection, there.error, prefix, kNotRemoved);
    for (unsigned pass = 0;; ++pass) {
        std::uint64_t objects = 0, uploads = 0;
        if (auto failure = end_uploads(connection, prefix, uploads)) return failure;
        auto failure = remove_listed(connection, prefix, marker(), objects);
        if (pass == 0) removed.fetch_add(objects, std::memory_order_relaxed);
        if (failure) return failure;
        if (objects + uploads == 0) break;
        if (pass == kMostPasses)
            return failure_of("ListObjectsV2", connection, EBUSY, prefix, kNotRemoved,
                              std::to_string(objects + uploads) + " are still listed after they were removed");
    }
    const S3Answer last = connection.ask({.method = "DELETE", .key = marker()});
    if (last.error != 0) return failure_of("DELETE", connection, last.error, marker(), kNotRemoved);
    const S3Answer gone = connection.ask({.method = "HEAD", .key = marker()});
    if (gone.error == ENOENT && last.version.empty()) return std::nullopt;
    return failure_of("HEAD", connection, gone.error, marker(), kNotRemoved,
                      !last.version.empty() ? kKeepsVersions
                      : gone.error == 0     ? "its server says that the marker is removed, and keeps it"
                                            : "");
}

}  // namespace strakes
#endif
