// The calls of backend/posix.hpp made in place (backend/system_call.hpp): what the kernel and the file system cost
// without the C library. Nothing between programs and the C library sees them, so it is no application's way; bench
// uses it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "backend/file.hpp"
#include "backend/posix.hpp"
#include "backend/system_call.hpp"
#include "system/descriptor.hpp"

namespace strakes {

struct Raw {
    using Opened = Posix::Opened;
    using Moved = Posix::Moved;
    using Handle = Posix::Handle;
    static constexpr bool kKernelFiles = true;

    static FileStep connect(std::uint32_t /*rank*/) noexcept { return {}; }
    static int root(int of_the_process, std::uint32_t /*rank*/) noexcept { return of_the_process; }

    static Opened open(int directory, const char* name, int flags) noexcept {
        const long result = system_call(SYS_openat, directory, name, flags, Posix::kFileMode);
        return result < 0 ? Opened{-1, static_cast<int>(-result)} : Opened{static_cast<int>(result), 0};
    }
    static Opened enter(int directory, const char* name) noexcept { return Posix::enter(directory, name); }
    // Linux closes the descriptor also where it says EINTR; repeating would close another one.
    static int close(int descriptor) noexcept {
        const long result = detail::system_call(SYS_close, descriptor, 0, 0, 0, 0);
        return result == -EINTR ? 0 : error_of(result);
    }

    static Moved read_at(int descriptor, std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        return moved(system_call(SYS_pread64, descriptor, to, bytes, offset));
    }
    static Moved write_at(int descriptor, const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
        return moved(system_call(SYS_pwrite64, descriptor, from, bytes, offset));
    }
    static int synchronise(int descriptor) noexcept { return error_of(system_call(SYS_fsync, descriptor)); }

    static int make_node(int directory, const char* name) noexcept {
        return error_of(system_call(SYS_mknodat, directory, name, S_IFREG | Posix::kFileMode, 0));
    }
    static int make_directory(int directory, const char* name) noexcept {
        return error_of(system_call(SYS_mkdirat, directory, name, Posix::kDirectoryMode));
    }
    static int status(int directory, const char* name) noexcept {
        struct stat unused;
        return error_of(system_call(SYS_newfstatat, directory, name, &unused, AT_SYMLINK_NOFOLLOW));
    }
    static int rename(int directory, const char* from, const char* to) noexcept {
        return error_of(system_call(SYS_renameat2, directory, from, directory, to, 0));
    }
    static int remove_file(int directory, const char* name) noexcept {
        return error_of(system_call(SYS_unlinkat, directory, name, 0));
    }
    static int remove_directory(int directory, const char* name) noexcept {
        return error_of(system_call(SYS_unlinkat, directory, name, AT_REMOVEDIR));
    }

  private:
    static int error_of(long result) noexcept { return result < 0 ? static_cast<int>(-result) : 0; }
    static Moved moved(long result) noexcept {
        return result < 0 ? Moved{0, static_cast<int>(-result)} : Moved{static_cast<std::size_t>(result), 0};
    }
};

class RawFile {
  public:
    static constexpr bool kQueues = false;
    static constexpr bool kWritingReads = false;

    static FileStep prepare(std::span<std::byte> /*buffer*/, std::uint32_t /*depth*/) noexcept { return {}; }
    FileStep attach(Descriptor descriptor, const FileUse& /*use*/) noexcept {
        descriptor_ = std::move(descriptor);
        return {};
    }
    [[gnu::always_inline]] FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        const auto [moved, error] = Raw::read_at(descriptor_.get(), to, bytes, offset);
        return {moved, error};
    }
    [[gnu::always_inline]] FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
        const auto [moved, error] = Raw::write_at(descriptor_.get(), from, bytes, offset);
        return {moved, error};
    }
    FileStep synchronise() noexcept { return {"fsync", Raw::synchronise(descriptor_.get())}; }
    FileStep close() noexcept { return {"close", Raw::close(descriptor_.release())}; }
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(descriptor_); }

  private:
    Descriptor descriptor_;
};

}  // namespace strakes
