// Serialises values for processes that run the same binary on machines of one architecture.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace strakes {

class Packer {
  public:
    template <class Value>
        requires std::is_trivially_copyable_v<Value>
    void put(const Value& value) {
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    void put_text(std::string_view text) {
        put(std::uint64_t{text.size()});
        bytes_.append(text);
    }
    [[nodiscard]] std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

// Reads the values in the order a Packer wrote them. Past the end it returns zeros and empty texts.
class Unpacker {
  public:
    explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

    template <class Value>
        requires std::is_trivially_copyable_v<Value>
    [[nodiscard]] Value get() {
        Value value{};
        const std::string_view piece = next(sizeof value);
        if (piece.size() == sizeof value) piece.copy(reinterpret_cast<char*>(&value), sizeof value);
        return value;
    }
    [[nodiscard]] std::string_view get_text() { return next(get<std::uint64_t>()); }
    [[nodiscard]] bool at_end() const noexcept { return bytes_.empty(); }

  private:
    std::string_view next(std::uint64_t size) {
        const std::string_view piece = bytes_.substr(0, static_cast<std::size_t>(size));
        bytes_.remove_prefix(piece.size());
        return piece;
    }

    std::string_view bytes_;
};

}  // namespace strakes
