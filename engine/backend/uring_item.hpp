// One operation on an item as io_uring requests, one after the other: a single request, or open, moving data, close.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/posix.hpp"
#include "backend/ring.hpp"
#include "data/pattern.hpp"
#include "plan/plan.hpp"

namespace strakes {

class UringItem {
  public:
    // What is moved, by way of a buffer of its own that was filled with the stream.
    struct Data {
        std::span<std::byte> buffer;
        std::uint64_t bytes = 0;
        Stream stream{};
        std::uint64_t number = 0;  // of the item
    };

    // The names must stay where they are until the request is handed over; `to` is for renames only.
    void begin(MetadataOperation operation, int directory, const char* name, const char* to, const Data& data) noexcept;
    // Fills in the request that is next.
    void push(Ring& ring, std::uint32_t tag) noexcept;
    // Takes the result of that request. True when the operation is over, well or not.
    bool take(int result) noexcept;

    // The call that failed and how; Posix's names. kEnded: the file is shorter than it was written.
    static constexpr int kEnded = -1;
    [[nodiscard]] const char* call() const noexcept { return call_; }
    [[nodiscard]] int error() const noexcept { return error_; }

  private:
    enum class Step : std::uint8_t { only, open, move, close };

    bool fail(const char* call, int error) noexcept;
    bool after_open(int result) noexcept;
    bool after_move(int result) noexcept;
    [[nodiscard]] bool reading() const noexcept { return operation_ == MetadataOperation::file_read; }

    MetadataOperation operation_{};
    Step step_ = Step::only;
    int directory_ = -1;
    int file_ = -1;
    const char* name_ = "";
    const char* to_ = "";
    const char* call_ = "";
    int error_ = 0;
    Data data_;
    std::uint64_t moved_ = 0;
    struct statx status_{};
};

}  // namespace strakes
