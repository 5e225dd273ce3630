// An operation on an item as a sequence of io_uring requests: a single one, or open, data transfers and close.
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
    // The data of the item, and a buffer that was filled with the stream.
    struct Data {
        std::span<std::byte> buffer;
        std::uint64_t bytes = 0;
        Stream stream{};
        std::uint64_t number = 0;  // of the item
    };

    // The names must stay valid until take() returns true, since push() repeats an interrupted request. Only renames
    // use `to`.
    void begin(MetadataOperation operation, int directory, const char* name, const char* to, const Data& data) noexcept;
    // Fills in the next request.
    void push(Ring& ring, std::uint32_t tag) noexcept;
    // Processes the result of that request. Returns true when the operation has succeeded or failed.
    bool take(int result) noexcept;

    // The call that failed, by its POSIX name, and the error number. kEnded: the file is shorter than it was written.
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
