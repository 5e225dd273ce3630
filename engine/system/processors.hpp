// Sets of processors, and functions that give a thread a separate processor or descriptor table.
#pragma once

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

namespace strakes {

// A set of processors of one machine, as a bit mask in the kernel's format without trailing zero bytes; empty if
// unknown.
class Processors {
  public:
    Processors() = default;
    // `bytes` come from bytes() of another process.
    explicit Processors(std::string_view bytes) : bytes_(bytes) {}
    // The affinity mask of the calling thread, which threads that it starts inherit.
    [[nodiscard]] static Processors allowed() {
        Sets sets{};
        if (::sched_getaffinity(0, sizeof sets, sets.data()) != 0) return {};
        std::string bytes(reinterpret_cast<const char*>(sets.data()), sizeof sets);
        bytes.resize(bytes.find_last_not_of('\0') + 1);
        return Processors(bytes);
    }

    // The set of these numbers, which must be below most().
    [[nodiscard]] static Processors of(std::span<const std::uint32_t> numbers) {
        std::string bytes;
        for (const std::uint32_t number : numbers) {
            bytes.resize(std::max<std::size_t>(bytes.size(), number / 8 + 1));
            bytes[number / 8] = static_cast<char>(bytes[number / 8] | (1U << (number % 8)));
        }
        return Processors(bytes);
    }
    [[nodiscard]] static std::uint32_t most() noexcept { return kMost; }
    [[nodiscard]] static Processors current() {
        const int number = ::sched_getcpu();
        if (number < 0) return {};
        std::string bytes(static_cast<std::size_t>(number) / 8 + 1, '\0');
        bytes.back() = static_cast<char>(1U << (static_cast<unsigned>(number) % 8));
        return Processors(bytes);
    }
    // Restrict the calling thread to this set. Return false if the set is empty or not permitted.
    bool keep_to() const noexcept {
        Sets sets{};
        bytes_.copy(reinterpret_cast<char*>(sets.data()), sizeof sets);
        return ::sched_setaffinity(0, sizeof sets, sets.data()) == 0;
    }

    void add(const Processors& others) {
        bytes_.resize(std::max(bytes_.size(), others.bytes_.size()));
        for (std::size_t i = 0; i < others.bytes_.size(); ++i)
            bytes_[i] = static_cast<char>(bytes_[i] | others.bytes_[i]);
    }
    void remove(const Processors& others) noexcept {
        for (std::size_t i = 0; i < std::min(bytes_.size(), others.bytes_.size()); ++i)
            bytes_[i] = static_cast<char>(bytes_[i] & ~others.bytes_[i]);
    }
    // Return whether this set contains all of `others`. Also true if `others` is unknown.
    [[nodiscard]] bool has_all(const Processors& others) const noexcept {
        Processors left = others;
        left.remove(*this);
        return left.count() == 0;
    }
    [[nodiscard]] std::size_t count() const noexcept {
        return std::transform_reduce(bytes_.begin(), bytes_.end(), std::size_t{0}, std::plus<>(), [](char byte) {
            return static_cast<std::size_t>(std::popcount(static_cast<unsigned char>(byte)));
        });
    }
    // Return whether `ranks` computing ranks have to share processors. False if the set is unknown.
    [[nodiscard]] bool too_few_for(std::size_t ranks) const noexcept { return !bytes_.empty() && ranks > count(); }
    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

    template <class Archive, class Self>
    static void members(Archive& archive, Self& self) {
        archive(self.bytes_);
    }

  private:
    static constexpr std::size_t kMost = 16384;  // Maximum number of processors. No machine has more.
    using Sets = std::array<cpu_set_t, kMost / CPU_SETSIZE>;

    std::string bytes_;
};

// Restricts the calling thread to free processors until the object is destroyed. Otherwise two ranks may start on one
// processor although another is idle, and one rank waits until the other is preempted.
class Aside {
  public:
    // Restrict the thread to `allowed` without `taken`. Do nothing if all are taken.
    Aside(const Processors& allowed, const Processors& taken) {
        Processors free = allowed;
        free.remove(taken);
        if (free.count() > 0 && free.keep_to()) before_ = allowed;
    }
    ~Aside() {
        if (before_.count() > 0) before_.keep_to();
    }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

  private:
    Processors before_;
};

// Give the calling thread a separate descriptor table. With a shared table the kernel counts references to files in
// every call, which costs 25-30 % of create and open-close. Do nothing if a library is preloaded: it may track files by
// descriptor number, which must then be unique in the process.
inline void take_own_table() noexcept {
    const char* preloaded = std::getenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe): set by nobody
    if (preloaded != nullptr && *preloaded != '\0') return;
    struct stat everywhere{};
    if (::stat("/etc/ld.so.preload", &everywhere) == 0 && everywhere.st_size > 0) return;
    static_cast<void>(::unshare(CLONE_FILES));
}

}  // namespace strakes
