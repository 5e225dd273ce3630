// A file moved by pread and pwrite.
#pragma once

#include <span>
#include <utility>

#include "backend/file.hpp"
#include "backend/posix.hpp"
#include "system/descriptor.hpp"

namespace strakes {

class PosixFile {
  public:
    static constexpr bool kQueues = false;
    static constexpr bool kWritingReads = false;

    static FileStep prepare(std::span<std::byte> /*buffer*/, std::uint32_t /*depth*/) noexcept { return {}; }
    FileStep attach(Descriptor descriptor, const FileUse& /*use*/) noexcept {
        descriptor_ = std::move(descriptor);
        return {};
    }
    [[gnu::always_inline]] FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        const auto [moved, error] = Posix::read_at(descriptor_.get(), to, bytes, offset);
        return {moved, error};
    }
    [[gnu::always_inline]] FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
        const auto [moved, error] = Posix::write_at(descriptor_.get(), from, bytes, offset);
        return {moved, error};
    }
    FileStep synchronise() noexcept { return {"fsync", Posix::synchronise(descriptor_.get())}; }
    FileStep close() noexcept { return {"close", Posix::close(descriptor_.release())}; }
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(descriptor_); }

  private:
    Descriptor descriptor_;
};

}  // namespace strakes
