// A file that is read and written by synchronous calls of Posix, Raw or Ceph, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "backend/file.hpp"

namespace strakes {

template <class Calls>
class CallFile {
  public:
    // NOLINTNEXTLINE(readability-redundant-typename): Clang before 16 needs it
    using Handle = typename Calls::Handle;

    static constexpr bool kQueues = false;
    static constexpr bool kWritingReads = false;

    static FileStep prepare(std::span<std::byte> /*buffer*/, std::uint32_t /*depth*/) noexcept { return {}; }
    FileStep attach(Handle handle, const FileUse& /*use*/) noexcept {
        handle_ = std::move(handle);
        return {};
    }
    [[gnu::always_inline]] FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        return Calls::read_at(handle_.get(), to, bytes, offset);
    }
    [[gnu::always_inline]] FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
        return Calls::write_at(handle_.get(), from, bytes, offset);
    }
    FileStep synchronise() noexcept { return {Calls::kSynchroniseCall, Calls::synchronise(handle_.get())}; }
    FileStep close() noexcept { return {Calls::kCloseCall, Calls::close(handle_.release())}; }
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(handle_); }

  private:
    Handle handle_;
};

}  // namespace strakes
