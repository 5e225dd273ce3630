// A file of a Ceph file system, moved by libcephfs.
#pragma once

#include <span>
#include <utility>

#include "backend/ceph.hpp"
#include "backend/file.hpp"

namespace strakes {

class CephFile {
  public:
    static constexpr bool kQueues = false;
    static constexpr bool kWritingReads = false;

    static FileStep prepare(std::span<std::byte> /*buffer*/, std::uint32_t /*depth*/) noexcept { return {}; }
    FileStep attach(Ceph::Handle handle, const FileUse& /*use*/) noexcept {
        handle_ = std::move(handle);
        return {};
    }
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
        const auto [moved, error] = Ceph::read_at(handle_.get(), to, bytes, offset);
        return {moved, error};
    }
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
        const auto [moved, error] = Ceph::write_at(handle_.get(), from, bytes, offset);
        return {moved, error};
    }
    FileStep synchronise() noexcept { return {"ceph_fsync", Ceph::synchronise(handle_.get())}; }
    FileStep close() noexcept { return {"ceph_close", Ceph::close(handle_.release())}; }
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(handle_); }

  private:
    Ceph::Handle handle_;
};

}  // namespace strakes
