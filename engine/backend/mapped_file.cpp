#include "backend/mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <utility>

#include "backend/posix.hpp"

namespace strakes {

namespace {

// The point where this thread resumes after a copy touched a page that the file system cannot supply. The variable is
// global because a signal handler can reach only globals.
thread_local sigjmp_buf* landing = nullptr;

void on_bus_error(int signal) {
    if (landing != nullptr) ::siglongjmp(*landing, 1);
    // A SIGBUS outside a copy is a bug in the engine: the instruction repeats, and the default action ends the process.
    ::signal(signal, SIG_DFL);
}

void catch_bus_errors() {
    static const bool caught = [] {
        struct sigaction action{};
        action.sa_handler = on_bus_error;
        action.sa_flags = SA_NODEFER;  // SIGBUS must not stay blocked: siglongjmp() does not restore the signal mask.
        return ::sigaction(SIGBUS, &action, nullptr) == 0;
    }();
    static_cast<void>(caught);
}

// Copies bytes. Returns false after a SIGBUS, which may have interrupted the copy anywhere.
bool copy_pages(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    sigjmp_buf here;
    if (sigsetjmp(here, 0) != 0) {
        landing = nullptr;
        return false;
    }
    landing = &here;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::memcpy(to, from, bytes);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    landing = nullptr;
    return true;
}

std::uint64_t page_start(std::uint64_t offset) noexcept {
    static const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return offset / kPage * kPage;
}

}  // namespace

FileStep MappedFile::attach(Descriptor descriptor, const FileUse& use) noexcept {
    catch_bus_errors();
    descriptor_ = std::move(descriptor);
    struct stat status{};
    if (::fstat(descriptor_.get(), &status) != 0) return {"fstat", errno};
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (use.writes && size < use.end) {
        // Write the last byte, which only this rank writes. ftruncate() could cut off data of other ranks.
        constexpr std::byte kZero{};
        if (const auto [bytes, error] = Posix::write_at(descriptor_.get(), &kZero, 1, use.end - 1); error != 0)
            return {"pwrite", error};
    }
    begin_ = page_start(use.begin);
    end_ = use.writes ? use.end : std::min(use.end, size);
    if (end_ <= begin_) return {};
    const int protection = use.writes ? PROT_READ | PROT_WRITE : PROT_READ;
    void* mapping =
        ::mmap(nullptr, end_ - begin_, protection, MAP_SHARED, descriptor_.get(), static_cast<off_t>(begin_));
    if (mapping == MAP_FAILED) return {"mmap", errno};
    mapping_ = {static_cast<std::byte*>(mapping), end_ - begin_};
    return {};
}

std::size_t MappedFile::mapped(std::size_t bytes, std::uint64_t offset) const noexcept {
    return offset < end_ ? std::min<std::uint64_t>(bytes, end_ - offset) : 0;
}

FileMove MappedFile::read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) noexcept {
    bytes = mapped(bytes, offset);
    if (bytes == 0 || copy_pages(to, at(offset), bytes)) return {bytes, 0};
    return read_fault(bytes, offset);
}

FileMove MappedFile::write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) noexcept {
    bytes = mapped(bytes, offset);
    if (bytes == 0 || copy_pages(at(offset), from, bytes)) return {bytes, 0};
    return {0, write_fault(from, bytes, offset)};
}

// Explains a SIGBUS in a read. Returns the number of bytes that remain if the file has shrunk, otherwise EIO.
FileMove MappedFile::read_fault(std::size_t bytes, std::uint64_t offset) const noexcept {
    struct stat status{};
    if (::fstat(descriptor_.get(), &status) != 0) return {0, errno};
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size >= offset + bytes) return {0, EIO};
    return {size > offset ? size - offset : 0, 0};
}

// Repeats a write with pwrite() to obtain the error number, which a SIGBUS does not carry.
int MappedFile::write_fault(const std::byte* from, std::size_t bytes, std::uint64_t offset) const noexcept {
    while (bytes > 0) {
        const auto [moved, error] = Posix::write_at(descriptor_.get(), from, bytes, offset);
        if (error != 0) return error;
        if (moved == 0) break;
        from += moved;
        bytes -= moved;
        offset += moved;
    }
    return EIO;
}

FileStep MappedFile::synchronise() noexcept {
    if (!mapping_.empty() && ::msync(mapping_.data(), mapping_.size(), MS_SYNC) != 0) return {"msync", errno};
    return {};
}

FileStep MappedFile::close() noexcept {
    if (const int error = unmap(); error != 0) return {"munmap", error};
    return {"close", Posix::close(descriptor_.release())};
}

int MappedFile::unmap() noexcept {
    if (mapping_.empty()) return 0;
    const std::span<std::byte> mapping = std::exchange(mapping_, {});
    return ::munmap(mapping.data(), mapping.size()) == 0 ? 0 : errno;
}

}  // namespace strakes
