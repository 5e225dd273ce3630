// The interface that a transfer phase requires of a backend's file: steps around the timed loop, and transfers in it.
//
//     class File {
//         static constexpr bool kQueues;          // many requests in flight (workload/transfer_queue.hpp)
//         static constexpr bool kWritingReads;    // writing needs a readable descriptor
//         FileStep prepare(std::span<std::byte> buffer, std::uint32_t depth);   // before the file is opened
//         FileStep attach(Descriptor descriptor, const FileUse& use);           // timed as part of opening
//         FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset);           // not if kQueues
//         FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset);
//         FileStep synchronise();
//         FileStep close();
//         bool is_open() const;
//     };
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace strakes {

struct FileStep {
    const char* call = "";
    int error = 0;
};

// The number of bytes moved (fewer than requested after a short transfer or at the end of the file), and the error.
struct FileMove {
    std::size_t bytes;
    int error;
};

struct FileUse {
    bool reads, writes;
    std::uint64_t begin, end;
};

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

// The sessions of a process's ranks. The index is the rank modulo kMost, which is unambiguous because the ranks of a
// process are consecutive. Only the thread of a rank uses the rank's entry.
template <class Session>
class Sessions {
  public:
    static constexpr std::uint32_t kMost = 4096;

    [[nodiscard]] Session* of(std::uint32_t rank) const noexcept {
        const Entry& entry = entries_[rank % kMost];
        return entry.rank == rank ? entry.session.get() : nullptr;
    }
    [[nodiscard]] Session& at(std::size_t place) const noexcept { return *entries_[place].session; }
    [[nodiscard]] bool is_free(std::uint32_t rank) const noexcept { return !entries_[rank % kMost].session; }
    void set(std::uint32_t rank, std::unique_ptr<Session> session) {
        entries_[rank % kMost] = {rank, std::move(session)};
    }
    void end(std::uint32_t rank) noexcept {
        if (of(rank) != nullptr) entries_[rank % kMost].session.reset();
    }

  private:
    struct Entry {
        std::uint32_t rank = 0;
        std::unique_ptr<Session> session;
    };
    std::array<Entry, kMost> entries_;
};

}  // namespace strakes
