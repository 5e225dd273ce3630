// Sets of processors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace strakes {

// A set of processors of one machine, one bit each; empty if unknown.
class Processors {
  public:
    Processors() = default;
    // `bytes` come from bytes() of another process.
    explicit Processors(std::string_view bytes) : bytes_(bytes) {}
    // The affinity mask of the calling thread. Threads that it starts inherit it.
    [[nodiscard]] static Processors allowed();

    // The set of these numbers, which must be below most().
    [[nodiscard]] static Processors of(std::span<const std::uint32_t> numbers);
    // Number of processors supported.
    [[nodiscard]] static std::uint32_t most() noexcept;
    // The processor that runs the calling thread at this moment.
    [[nodiscard]] static Processors current();
    // Restrict the calling thread to this set. Return false if the set is empty or not permitted.
    bool keep_to() const noexcept;

    void add(const Processors& others);
    void remove(const Processors& others) noexcept;
    // Also true if `others` is unknown.
    [[nodiscard]] bool has_all(const Processors& others) const noexcept;
    [[nodiscard]] std::size_t count() const noexcept;
    // Whether `ranks` ranks that all compute have to share processors. False if the set is unknown.
    [[nodiscard]] bool too_few_for(std::size_t ranks) const noexcept { return !bytes_.empty() && ranks > count(); }
    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

  private:
    std::string bytes_;
};

}  // namespace strakes
