// Page-aligned memory of a rank, given back to the system when it goes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace strakes {

// Of which pages memory is: the usual ones, large ones that the kernel puts together (transparent huge pages), or those
// that were set aside for it (hugetlbfs).
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

    // Empty when the system has no such memory; the pages are there already, so that no timed section pays for them.
    static Buffer of(std::size_t size, Pages pages = Pages::normal);

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

  private:
    std::span<std::byte> bytes_, mapped_;
};

// The least that memory of these pages is taken in; 0 where this machine has no such pages.
std::size_t page_bytes(Pages pages);
// How many pages are set aside and free.
std::uint64_t free_huge_pages();

// `size` in whole pages of `page` bytes.
constexpr std::uint64_t in_pages(std::uint64_t size, std::uint64_t page) noexcept {
    return page == 0 ? size : (size + page - 1) / page * page;
}

}  // namespace strakes
