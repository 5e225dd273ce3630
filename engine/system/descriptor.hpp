// Classes that own descriptors and directory streams, and close them in their destructors.
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace strakes {

template <auto close>
class Owned {
  public:
    Owned() noexcept = default;
    explicit Owned(int value) noexcept : value_(value) {}
    Owned(Owned&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(value_, other.value_);
        return *this;
    }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
        if (value_ >= 0) static_cast<void>(close(value_));
    }

    [[nodiscard]] int get() const noexcept { return value_; }
    [[nodiscard]] explicit operator bool() const noexcept { return value_ >= 0; }
    [[nodiscard]] int release() noexcept { return std::exchange(value_, -1); }

  private:
    int value_ = -1;
};

using Descriptor = Owned<::close>;

// The numbers by which a directory is known. 0: not known.
struct Identity {
    std::uint64_t inode = 0, device = 0;

    [[nodiscard]] bool is_of(const struct stat& opened) const noexcept {
        return (inode == 0 || inode == opened.st_ino) && (device == 0 || device == opened.st_dev);
    }
};

struct CloseDirectory {
    void operator()(DIR* stream) const noexcept { ::closedir(stream); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// Returns a stream that owns the descriptor of a directory, or null.
[[nodiscard]] inline DirectoryStream stream_of(Descriptor directory) noexcept {
    DirectoryStream stream(directory ? ::fdopendir(directory.get()) : nullptr);
    if (stream) static_cast<void>(directory.release());
    return stream;
}

}  // namespace strakes
