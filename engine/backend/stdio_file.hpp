// A file that is read and written by fread() and fwrite() with the C library's default buffer, as in many older codes.
#pragma once

#include <stdio_ext.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <utility>

#include "backend/file.hpp"
#include "backend/posix.hpp"
#include "system/descriptor.hpp"

namespace strakes {

class StdioFile {
  public:
    static constexpr bool kQueues = false;
    static constexpr bool kWritingReads = false;

    static FileStep prepare(std::span<std::byte> /*buffer*/, std::uint32_t /*depth*/) noexcept { return {}; }
    FileStep attach(Descriptor descriptor, const FileUse& use) noexcept {
        const char* mode = use.reads ? "r" : "w";  // fdopen() with "w" does not truncate
        if (use.reads && use.writes) mode = "r+";
        std::FILE* file = ::fdopen(descriptor.get(), mode);
        if (file == nullptr) return {"fdopen", errno};
        static_cast<void>(descriptor.release());
        // Only the rank's thread uses the FILE, so calls need no lock.
        ::__fsetlocking(file, FSETLOCKING_BYCALLER);
        file_.reset(file);
        at_ = kUnknown;
        return {};
    }
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        if (const int error = seek(offset, true); error != 0) return {0, error};
        const std::size_t moved = std::fread(to, 1, bytes, file_.get());
        at_ = offset + moved;
        if (moved == bytes) return {moved, 0};
        const int error = std::ferror(file_.get()) != 0 ? errno : 0;
        std::clearerr(file_.get());
        at_ = kUnknown;
        return {moved, error};
    }
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
        if (const int error = seek(offset, false); error != 0) return {0, error};
        const std::size_t moved = std::fwrite(from, 1, bytes, file_.get());
        at_ = offset + moved;
        if (moved == bytes) return {moved, 0};
        const int error = errno;
        std::clearerr(file_.get());
        at_ = kUnknown;
        return {moved, error};
    }
    FileStep synchronise() noexcept {
        if (std::fflush(file_.get()) != 0) return {"fflush", errno};
        return {"fsync", Posix::synchronise(::fileno(file_.get()))};
    }
    FileStep close() noexcept {
        const int error = std::fclose(file_.release()) == 0 || errno == EINTR ? 0 : errno;
        return {"fclose", error};
    }
    [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }

  private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
    };
    static constexpr std::uint64_t kUnknown = UINT64_MAX;

    // Seeks only if needed, as applications do. Switching between reads and writes needs a seek (ISO C, 7.21.5.3).
    int seek(std::uint64_t offset, bool reading) noexcept {
        if (offset == at_ && reading == reading_) return 0;
        at_ = kUnknown;
        for (;;) {
            if (::fseeko(file_.get(), static_cast<off_t>(offset), SEEK_SET) == 0) break;
            if (errno != EINTR) return errno;
        }
        at_ = offset;
        reading_ = reading;
        return 0;
    }

    std::unique_ptr<std::FILE, Close> file_;
    std::uint64_t at_ = kUnknown;
    bool reading_ = false;
};

}  // namespace strakes
