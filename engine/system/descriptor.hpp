// A file descriptor, or a number like one, that is closed when its owner goes.
#pragma once

#include <unistd.h>

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

}  // namespace strakes
