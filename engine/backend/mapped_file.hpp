// A file that is read and written by memcpy() from and to a mapping of the rank's bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/file.hpp"
#include "system/descriptor.hpp"

namespace strakes {

class MappedFile {
  public:
    static constexpr bool kQueues = false;
    static constexpr bool kWritingReads = true;

    MappedFile() noexcept = default;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() { unmap(); }

    static FileStep prepare(std::span<std::byte> /*buffer*/, std::uint32_t /*depth*/) noexcept { return {}; }
    // Maps the rank's range. Writing first extends the file to the end of the range; reading maps only existing bytes.
    FileStep attach(Descriptor descriptor, const FileUse& use) noexcept;
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept;
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept;
    FileStep synchronise() noexcept;
    FileStep close() noexcept;
    [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(descriptor_); }

  private:
    [[nodiscard]] std::size_t mapped(std::size_t bytes, std::uint64_t offset) const noexcept;
    [[nodiscard]] std::byte* at(std::uint64_t offset) const noexcept { return mapping_.data() + (offset - begin_); }
    [[nodiscard]] FileMove read_fault(std::size_t bytes, std::uint64_t offset) const noexcept;
    [[nodiscard]] int write_fault(const std::byte* from, std::size_t bytes, std::uint64_t offset) const noexcept;
    int unmap() noexcept;

    Descriptor descriptor_;
    std::span<std::byte> mapping_;
    std::uint64_t begin_ = 0, end_ = 0;  // the mapping's range of the file; begin_ is page-aligned
};

}  // namespace strakes
