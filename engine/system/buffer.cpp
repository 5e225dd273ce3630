#include "system/buffer.hpp"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

namespace strakes {

namespace {

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

std::uint64_t memory_line(const std::string& wanted) {
    std::ifstream lines("/proc/meminfo");
    for (std::string name; lines >> name; lines.ignore(4096, '\n')) {
        std::uint64_t value = 0;
        if (name == wanted && lines >> value) return value;
    }
    return 0;
}

// Huge pages are aligned to their size. The mapping is one page larger, so that an aligned range fits into it.
std::span<std::byte> aligned(std::span<std::byte> mapped, std::size_t page) noexcept {
    const auto past = reinterpret_cast<std::uintptr_t>(mapped.data()) % page;
    return mapped.subspan(past == 0 ? 0 : page - past);
}

// Back `memory` with transparent huge pages. Linux before 6.1 has no MADV_COLLAPSE (EINVAL); the result is then unknown
// and taken as success.
bool put_together(std::span<std::byte> memory) {
    if (::madvise(memory.data(), memory.size(), MADV_HUGEPAGE) != 0) return false;
    const std::size_t small = page_bytes(Pages::normal);
    for (std::size_t at = 0; at < memory.size(); at += small) memory[at] = std::byte{0};
    return ::madvise(memory.data(), memory.size(), MADV_COLLAPSE) == 0 || errno == EINVAL;
}

}  // namespace

Buffer Buffer::of(std::size_t size, Pages pages) {
    Buffer buffer;
    const bool transparent = pages == Pages::transparent;
    const std::size_t page = pages == Pages::normal ? 0 : page_bytes(pages);
    if (pages != Pages::normal && page == 0) return buffer;
    const std::size_t whole = in_pages(size, page);
    const std::size_t mapped = transparent ? whole + page : whole;
    const int kind = transparent ? 0 : pages == Pages::huge ? MAP_HUGETLB | MAP_POPULATE : MAP_POPULATE;
    void* memory = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | kind, -1, 0);
    if (memory == MAP_FAILED) return buffer;
    buffer.mapped_ = {static_cast<std::byte*>(memory), mapped};
    const std::span<std::byte> usable = transparent ? aligned(buffer.mapped_, page).first(whole) : buffer.mapped_;
    if (!transparent || put_together(usable)) buffer.bytes_ = usable.first(size);
    return buffer;
}

std::size_t page_bytes(Pages pages) {
    if (pages == Pages::normal) return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    if (pages == Pages::huge) return memory_line("Hugepagesize:") * 1024;
    const std::string folder = "/sys/kernel/mm/transparent_hugepage/";
    std::string rule;
    std::getline(std::ifstream(folder + "enabled"), rule);
    std::size_t bytes = 0;
    if (rule.find("[never]") == std::string::npos) std::ifstream(folder + "hpage_pmd_size") >> bytes;
    return bytes;
}

std::uint64_t free_huge_pages() { return memory_line("HugePages_Free:"); }

}  // namespace strakes
