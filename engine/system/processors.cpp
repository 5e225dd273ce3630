// Sets of processors as bit masks in the kernel's format, without trailing zero bytes.
#include "system/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>

namespace strakes {

namespace {

constexpr std::size_t kMost = 16384;  // more than any machine has
using Sets = std::array<cpu_set_t, kMost / CPU_SETSIZE>;

}  // namespace

Processors Processors::allowed() {
    Sets sets{};
    if (::sched_getaffinity(0, sizeof sets, sets.data()) != 0) return {};
    std::string bytes(reinterpret_cast<const char*>(sets.data()), sizeof sets);
    bytes.resize(bytes.find_last_not_of('\0') + 1);
    return Processors(bytes);
}

Processors Processors::current() {
    const int number = ::sched_getcpu();
    if (number < 0) return {};
    std::string bytes(static_cast<std::size_t>(number) / 8 + 1, '\0');
    bytes.back() = static_cast<char>(1U << (static_cast<unsigned>(number) % 8));
    return Processors(bytes);
}

Processors Processors::of(std::span<const std::uint32_t> numbers) {
    std::string bytes;
    for (const std::uint32_t number : numbers) {
        bytes.resize(std::max<std::size_t>(bytes.size(), number / 8 + 1));
        bytes[number / 8] = static_cast<char>(bytes[number / 8] | (1U << (number % 8)));
    }
    return Processors(bytes);
}

std::uint32_t Processors::most() noexcept { return kMost; }

bool Processors::keep_to() const noexcept {
    Sets sets{};
    bytes_.copy(reinterpret_cast<char*>(sets.data()), sizeof sets);
    return ::sched_setaffinity(0, sizeof sets, sets.data()) == 0;
}

void Processors::add(const Processors& others) {
    bytes_.resize(std::max(bytes_.size(), others.bytes_.size()));
    for (std::size_t i = 0; i < others.bytes_.size(); ++i) bytes_[i] = static_cast<char>(bytes_[i] | others.bytes_[i]);
}

void Processors::remove(const Processors& others) noexcept {
    for (std::size_t i = 0; i < std::min(bytes_.size(), others.bytes_.size()); ++i)
        bytes_[i] = static_cast<char>(bytes_[i] & ~others.bytes_[i]);
}

bool Processors::has_all(const Processors& others) const noexcept {
    Processors left = others;
    left.remove(*this);
    return left.count() == 0;
}

std::size_t Processors::count() const noexcept {
    return std::transform_reduce(bytes_.begin(), bytes_.end(), std::size_t{0}, std::plus<>(), [](char byte) {
        return static_cast<std::size_t>(std::popcount(static_cast<unsigned char>(byte)));
    });
}

}  // namespace strakes
