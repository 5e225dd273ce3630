#ifdef STRAKES_S3
#include "backend/s3.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "backend/s3_connection.hpp"

namespace strakes {

namespace {

constexpr unsigned kObjectBits = 18;
constexpr int kObjectMask = (1 << kObjectBits) - 1;

struct Object {
    std::string key;  // key of the object; ends with a slash for a directory
    bool writes = false;
    bool written = false;
};

struct Session {
    S3Connection connection;
    std::vector<Object> objects;
    std::vector<int> free;
};

Sessions<Session> sessions;  // NOLINT(bugprone-dynamic-static-initializers)

Session& session_of(int number) noexcept { return sessions.at(static_cast<std::size_t>(number) >> kObjectBits); }
Object& object_of(int number) noexcept {
    return session_of(number).objects[static_cast<std::size_t>(number & kObjectMask)];
}

int error_of(int object, S3Connection::Wish wish) { return session_of(object).connection.ask(std::move(wish)).error; }

}  // namespace

FileStep S3::connect(std::uint32_t rank) {
    if (!sessions.is_free(rank)) return {"connect", sessions.of(rank) != nullptr ? 0 : EMFILE};
    sessions.set(rank, std::make_unique<Session>());
    sessions.of(rank)->objects.push_back({.key = S3Place::of_plan()});
    // The first request opens the connection, so that no timed section includes this.
    return {"HEAD", sessions.of(rank)->connection.ask({.method = "HEAD", .key = S3Place::marker()}).error};
}

void S3::disconnect(std::uint32_t rank) noexcept { sessions.end(rank); }

void S3::explain(std::uint32_t rank, Failure& failure) {
    const Session* session = sessions.of(rank);
    if (session == nullptr || session->connection.words().empty()) return;
    if (failure.error_name.empty()) return;
    failure.why += " (" + session->connection.words() + ")";
    if (failure.error_name == "EACCES")
        failure.remedy = "Check the keys, and that they may read, write, list and delete in the bucket.";
}

int S3::root(int /*of_the_process*/, std::uint32_t rank) noexcept {
    return static_cast<int>((rank % Sessions<Session>::kMost) << kObjectBits);
}

S3::Opened S3::open(int directory, const char* name, int flags) noexcept {
    Session& session = session_of(directory);
    if (session.free.empty()) {
        if (session.objects.size() > static_cast<std::size_t>(kObjectMask)) return {-1, EMFILE};
        session.free.push_back(static_cast<int>(session.objects.size()));
        session.objects.emplace_back();
    }
    const int number = session.free.back();
    session.free.pop_back();
    Object& object = session.objects[static_cast<std::size_t>(number)];
    object.key = object_of(directory).key + name + ((flags & O_DIRECTORY) != 0 ? "/" : "");
    object.writes = (flags & O_ACCMODE) != O_RDONLY;
    object.written = false;
    return {(directory & ~kObjectMask) | number, 0};
}

void S3::forget(int object) noexcept { session_of(object).free.push_back(object & kObjectMask); }

int S3::close(int object) noexcept {
    const Object& closed = object_of(object);
    const int error = closed.writes && !closed.written ? session_of(object).connection.put(closed.key, {}).error : 0;
    forget(object);
    return error;
}

S3::Moved S3::read_at(int object, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
    constexpr long kPart = 206, kNoSuchRange = 416;
    const std::string range = "bytes=" + std::to_string(offset) + "-" + std::to_string(offset + bytes - 1);
    const S3Answer answer = session_of(object).connection.ask(
        {.method = "GET", .key = object_of(object).key, .headers = {{"range", range}}, .into = {to, bytes}});
    if (answer.status == kNoSuchRange) return {0, 0};
    if (answer.error != 0) return {0, answer.error};  // An error counts even if all wanted bytes have arrived.
    if (answer.status != kPart) return {answer.bytes, offset == 0 ? 0 : EPROTO};  // the server ignored the range
    // A response with fewer bytes than requested must reach to the end of the object.
    const std::string end = std::to_string(offset + answer.bytes);
    const std::string part = "bytes " + std::to_string(offset) + "-" + std::to_string(offset + answer.bytes - 1) + "/";
    const bool right = answer.bytes < bytes ? answer.range == part + end : answer.range.starts_with(part);
    return {answer.bytes, right ? 0 : EPROTO};
}

S3::Moved S3::write_at(int object, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
    Object& written = object_of(object);
    if (offset != 0 || written.written) return {0, EINVAL};
    const int error = session_of(object).connection.put(written.key, {from, bytes}).error;
    written.written = error == 0;
    return {error == 0 ? bytes : 0, error};
}

int S3::status(int directory, const char* name) noexcept {
    return error_of(directory, {.method = "HEAD", .key = object_of(directory).key + name});
}

int S3::remove_file(int directory, const char* name) noexcept {
    return error_of(directory, {.method = "DELETE", .key = object_of(directory).key + name});
}

int S3::begin_upload(int object, std::string& upload) noexcept {
    const S3Answer answer =
        session_of(object).connection.ask({.method = "POST", .key = object_of(object).key, .query = {{"uploads", ""}}});
    if (answer.error != 0) return answer.error;
    upload = xml_text(answer.text, "UploadId");
    return upload.empty() || upload.size() > kMostValue ? EPROTO : 0;
}

int S3::put_part(int object, const std::string& upload, std::uint64_t number, std::span<const std::byte> part,
                 std::string& tag) noexcept {
    S3Answer answer =
        session_of(object).connection.ask({.method = "PUT",
                                           .key = object_of(object).key,
                                           .query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}},
                                           .body = part});
    tag = std::move(answer.tag);
    return answer.error;
}

int S3::end_upload(int object, const std::string& upload, const std::vector<std::string>& tags) noexcept {
    if (tags.empty())
        return error_of(object, {.method = "DELETE", .key = object_of(object).key, .query = {{"uploadId", upload}}});
    std::string parts = "<CompleteMultipartUpload>";
    for (std::size_t i = 0; i < tags.size(); ++i)
        parts += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + xml_escaped(tags[i]) +
                 "</ETag></Part>";
    parts += "</CompleteMultipartUpload>";
    return error_of(object, {.method = "POST",
                             .key = object_of(object).key,
                             .query = {{"uploadId", upload}},
                             .body = std::as_bytes(std::span(parts))});
}

FileStep S3File::attach(Handle handle, const FileUse& use) {
    handle_ = std::move(handle);
    upload_.clear();
    tags_.clear();
    if (!use.writes || use.end <= part_bytes_) return {};
    tags_.reserve((use.end + part_bytes_ - 1) / part_bytes_);
    return {"CreateMultipartUpload", S3::begin_upload(handle_.get(), upload_)};
}

FileMove S3File::write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
    if (upload_.empty()) return S3::write_at(handle_.get(), from, bytes, offset);
    std::string tag;
    const int error = S3::put_part(handle_.get(), upload_, offset / part_bytes_ + 1, {from, bytes}, tag);
    if (error != 0) return {0, error};
    tags_.push_back(std::move(tag));  // Parts are sent, and tags stored, in the order of part numbers.
    return {bytes, 0};
}

FileStep S3File::close() noexcept {
    FileStep ended{"CompleteMultipartUpload", 0};
    if (upload_.empty()) return {S3::kCloseCall, S3::close(handle_.release())};
    ended.error = S3::end_upload(handle_.get(), upload_, tags_);
    handle_ = Handle();
    return ended;
}

}  // namespace strakes
#endif
