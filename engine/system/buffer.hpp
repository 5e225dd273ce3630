// Page-aligned memory that is unmapped on destruction.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace strakes {

// Pages that back a buffer: normal, transparent huge pages, or reserved huge pages (hugetlbfs).
enum class Pages : std::uint8_t { normal, transparent, huge };

class Buffer {
  public:
    Buffer() noexcept = default;
    Buffer(Buffer&& other) noexcept
        : bytes_(std::exchange(other.bytes_, {})), mapped_(std::exchange(other.mapped_, {})) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        std::swap(mapped_, other.mapped_);
        return *this;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
    }

    // Return an empty buffer if the memory is not available. All pages are populated, so that no timed section takes
    // page faults.
    static Buffer of(std::size_t size, Pages pages = Pages::normal);

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

  private:
    std::span<std::byte> bytes_, mapped_;
};

// Size of a page of this kind, in bytes; 0 if this machine does not support such pages.
std::size_t page_bytes(Pages pages);
std::uint64_t free_huge_pages();

constexpr std::uint64_t in_pages(std::uint64_t size, std::uint64_t page) noexcept {
    return page == 0 ? size : (size + page - 1) / page * page;
}

}  // namespace strakes
