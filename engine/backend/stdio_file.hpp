// A file that is read and written by fread() and fwrite() with the C library's default buffer, as in many older codes.
#pragma once

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
    FileStep attach(Descriptor descriptor, const FileUse& use) noexcept;
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept;
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept;
    FileStep synchronise() noexcept;
    // Flushes the buffer and closes the file.
    FileStep close() noexcept;
    [[nodiscard]] bool is_open() const noexcept { return file_ != nullptr; }

  private:
    struct Close {
        void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
    };
    static constexpr std::uint64_t kUnknown = UINT64_MAX;

    int seek(std::uint64_t offset, bool reading) noexcept;

    std::unique_ptr<std::FILE, Close> file_;
    std::uint64_t at_ = kUnknown;
    bool reading_ = false;
};

}  // namespace strakes
