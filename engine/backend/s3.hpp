// Objects of an S3 store in place of files, with a connection for every rank.
//
// The calls have the signatures of backend/posix.hpp. A descriptor combines the number of a session with the number of
// an object name in that session. open() sends no request. An object is written with one request, or as the parts of a
// multipart upload (S3File), and read by range. plan/check_backends.cpp refuses operations for which S3 has no request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/file.hpp"
#include "backend/posix.hpp"
#include "system/descriptor.hpp"
#include "system/failure.hpp"

namespace strakes {

struct S3 {
    using Opened = Posix::Opened;
    using Moved = FileMove;
    static constexpr bool kKernelFiles = false;
    static constexpr const char *kSynchroniseCall = "fsync", *kCloseCall = "PUT";

    static void forget(int object) noexcept;
    using Handle = Owned<&S3::forget>;  // an open file or directory

    // Connects the rank and tests the connection with a HEAD request for the marker. Does nothing if the rank is
    // connected. Fails with EMFILE if another rank uses the rank's entry in the session table.
    static FileStep connect(std::uint32_t rank);
    static void disconnect(std::uint32_t rank) noexcept;
    // Appends the server's message to a failure of the rank.
    static void explain(std::uint32_t rank, Failure& failure);
    static int root(int /*of_the_process*/, std::uint32_t rank) noexcept;

    static Opened open(int directory, const char* name, int flags) noexcept;
    static Opened enter(int directory, const char* name) noexcept {
        return open(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    }
    // Creates an empty object if the object was opened for writing and nothing was written.
    static int close(int object) noexcept;
    static Moved read_at(int object, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept;
    // Writes the whole object. Fails with EINVAL if the offset is not 0 or the object was already written.
    static Moved write_at(int object, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept;
    static int synchronise(int /*object*/) noexcept { return ENOSYS; }
    static int make_node(int /*directory*/, const char* /*name*/) noexcept { return ENOSYS; }
    // These functions do nothing, because directories are only slashes in the keys.
    static int make_directory(int /*directory*/, const char* /*name*/) noexcept { return 0; }
    static int remove_directory(int /*directory*/, const char* /*name*/) noexcept { return 0; }
    static int status(int directory, const char* name) noexcept;
    static int rename(int /*directory*/, const char* /*from*/, const char* /*to*/) noexcept { return ENOSYS; }
    static int remove_file(int directory, const char* name) noexcept;

    // The steps of a multipart upload. end_upload() without tags aborts the upload.
    static int begin_upload(int object, std::string& upload) noexcept;
    static int put_part(int object, const std::string& upload, std::uint64_t number, std::span<const std::byte> part,
                        std::string& tag) noexcept;
    static int end_upload(int object, const std::string& upload, const std::vector<std::string>& tags) noexcept;
};

// An object that a rank writes with one request, or as a multipart upload with one part for each transfer.
class S3File {
  public:
    using Handle = S3::Handle;

    static constexpr bool kQueues = false;
    static constexpr bool kWritingReads = false;

    FileStep prepare(std::span<std::byte> buffer, std::uint32_t /*depth*/) noexcept {
        part_bytes_ = buffer.size();
        return {};
    }
    FileStep attach(Handle handle, const FileUse& use);
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        return S3::read_at(handle_.get(), to, bytes, offset);
    }
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept;
    static FileStep synchronise() noexcept { return {S3::kSynchroniseCall, ENOSYS}; }
    FileStep close() noexcept;
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(handle_); }

  private:
    Handle handle_;
    std::size_t part_bytes_ = 1;
    std::string upload_;             // upload id; empty if one request writes the object
    std::vector<std::string> tags_;  // ETags of the parts written
};

// The prefix in a bucket that holds a plan's objects and a marker object.
class S3Place {
  public:
    // Sets the prefix to NAME/ID/. NAME is the last component of `directory`; strakes created this directory, and no
    // other run uses its name.
    static void choose(const std::string& directory, const std::string& id);
    // look() checks that the prefix is empty, make() writes the marker, and join() checks that another process has
    // written the marker. Each function returns the failure, if any.
    [[nodiscard]] static std::optional<Failure> look();
    [[nodiscard]] static std::optional<Failure> make();
    [[nodiscard]] static std::optional<Failure> join();

    [[nodiscard]] static const std::string& of_plan() noexcept;
    [[nodiscard]] static std::string marker();
    // Returns the text of the note, a file that stays next to the plan's directory while objects exist. It names
    // endpoint, bucket and prefix for `strakes clean`, but no credentials.
    [[nodiscard]] static std::string note();

    // Aborts unfinished uploads, removes all objects below the prefix and then the marker, within an hour. Does nothing
    // if the marker is missing. Adds the number of removed objects to `removed` and returns the failure, if any.
    [[nodiscard]] static std::optional<Failure> empty(std::atomic<std::uint64_t>& removed);
};

}  // namespace strakes
