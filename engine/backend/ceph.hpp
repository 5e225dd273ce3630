// libcephfs as the loops use it, without a mount: every rank is a client of its own, with one session.
//
// The calls have the shape of backend/posix.hpp. A number they give or take means a session and a descriptor of that
// session; the sessions are in one table of the process, as the kernel's descriptors are. A session is used and ended
// by the thread that began it: its library threads share that thread's table of (real) descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "backend/file.hpp"
#include "backend/posix.hpp"

namespace strakes {

struct Ceph {
    using Opened = Posix::Opened;
    using Moved = FileMove;
    static constexpr bool kKernelFiles = false;
    static constexpr const char *kSynchroniseCall = "ceph_fsync", *kCloseCall = "ceph_close";

    // An open file or directory.
    class Handle {
      public:
        Handle() noexcept = default;
        explicit Handle(int value) noexcept : value_(value) {}
        Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
        Handle& operator=(Handle&& other) noexcept {
            std::swap(value_, other.value_);
            return *this;
        }
        Handle(const Handle&) = delete;
        Handle& operator=(const Handle&) = delete;
        ~Handle() {
            if (value_ >= 0) static_cast<void>(close(value_));
        }
        [[nodiscard]] int get() const noexcept { return value_; }
        [[nodiscard]] explicit operator bool() const noexcept { return value_ >= 0; }
        [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

      private:
        int value_ = -1;
    };

    // Of one process.
    static constexpr std::uint32_t kMostSessions = 4096;

    // The client of a rank, standing in the plan's directory; nothing happens when there is one already.
    static FileStep connect(std::uint32_t rank);
    static void disconnect(std::uint32_t rank) noexcept;
    // The plan's directory as that rank sees it.
    static int root(int /*of_the_process*/, std::uint32_t rank) noexcept;

    static Opened open(int directory, const char* name, int flags) noexcept;
    static Opened enter(int directory, const char* name) noexcept {
        return open(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    }
    static int close(int descriptor) noexcept;
    static Moved read_at(int descriptor, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept;
    static Moved write_at(int descriptor, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept;
    static int synchronise(int descriptor) noexcept;
    static int make_node(int /*directory*/, const char* /*name*/) noexcept;  // there is no such call
    static int make_directory(int directory, const char* name) noexcept;
    static int status(int directory, const char* name) noexcept;
    static int rename(int directory, const char* from, const char* to) noexcept;
    static int remove_file(int directory, const char* name) noexcept;
    static int remove_directory(int directory, const char* name) noexcept;
};

}  // namespace strakes
