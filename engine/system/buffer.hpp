// Page-aligned memory of a rank, given back to the system when it goes.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <span>
#include <utility>

namespace strakes {

class Buffer {
  public:
    Buffer() noexcept = default;
    Buffer(Buffer&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
    }

    // Empty when the system has no such memory; the pages are there already, so that no timed section pays for them.
    static Buffer of(std::size_t size) noexcept {
        Buffer buffer;
        void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (memory != MAP_FAILED) buffer.bytes_ = {static_cast<std::byte*>(memory), size};
        return buffer;
    }

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }

  private:
    std::span<std::byte> bytes_;
};

}  // namespace strakes
