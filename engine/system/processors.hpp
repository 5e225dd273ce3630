// The processors that this process may use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace strakes {

// A set of processors of one machine, a bit for each; empty where it is not known.
class Processors {
  public:
    Processors() = default;
    // From the bytes of another process.
    explicit Processors(std::string_view bytes) : bytes_(bytes) {}
    // Those of the calling thread, which the threads that it makes inherit.
    [[nodiscard]] static Processors allowed();

    // Those with these numbers, all below most().
    [[nodiscard]] static Processors of(std::span<const std::uint32_t> numbers);
    // How many there may be.
    [[nodiscard]] static std::uint32_t most() noexcept;
    // Where the calling thread is now; it may be elsewhere a moment later.
    [[nodiscard]] static Processors current();
    // From now on the calling thread keeps to these. False where it may not, or there are none.
    bool keep_to() const noexcept;

    void add(const Processors& others);
    void remove(const Processors& others) noexcept;
    // Also where those are not known.
    [[nodiscard]] bool has_all(const Processors& others) const noexcept;
    [[nodiscard]] std::size_t count() const noexcept;
    // Whether some of so many ranks must wait for a processor while all of them compute.
    [[nodiscard]] bool too_few_for(std::size_t ranks) const noexcept { return !bytes_.empty() && ranks > count(); }
    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

  private:
    std::string bytes_;
};

}  // namespace strakes
