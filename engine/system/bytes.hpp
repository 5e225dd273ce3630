// Serialises values for processes that run the same binary on machines of one architecture: plain values, texts,
// containers of them, and classes whose members() passes their members to a Packer or an Unpacker.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace strakes {

class Packer {
  public:
    template <class... Value>
    void operator()(const Value&... values) {
        (put(values), ...);
    }
    template <class Value>
    void put(const Value& value) {
        if constexpr (requires { Value::members(*this, value); }) {
            Value::members(*this, value);
        } else if constexpr (std::is_trivially_copyable_v<Value>) {
            bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
        } else if constexpr (requires { value.first; }) {
            (*this)(value.first, value.second);
        } else if constexpr (requires { value.get(); }) {
            put(value != nullptr);
            if (value) put(*value);
        } else if constexpr (std::is_same_v<Value, std::string>) {
            put_text(value);
        } else {
            put(std::uint64_t{value.size()});
            for (const auto& each : value) put(each);
        }
    }
    void put_text(std::string_view text) {
        put(std::uint64_t{text.size()});
        bytes_.append(text);
    }
    [[nodiscard]] std::string take() { return std::move(bytes_); }

  private:
    std::string bytes_;
};

// Reads the values in the order in which a Packer wrote them. Past the end, reads return zeros and empty texts.
class Unpacker {
  public:
    explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

    template <class... Value>
    void operator()(Value&... values) {
        (read(values), ...);
    }
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
    template <class Value>
    void read(Value& value) {
        if constexpr (requires { Value::members(*this, value); }) {
            Value::members(*this, value);
        } else if constexpr (std::is_trivially_copyable_v<Value>) {
            value = get<Value>();
        } else if constexpr (requires { value.first; }) {
            (*this)(value.first, value.second);
        } else if constexpr (requires { value.get(); }) {
            if (get<bool>()) read(*(value = std::make_unique<typename Value::element_type>()));
        } else if constexpr (std::is_same_v<Value, std::string>) {
            value = get_text();
        } else {
            for (auto left = get<std::uint64_t>(); left > 0 && !at_end(); --left) {
                if constexpr (requires { typename Value::mapped_type; }) {
                    typename Value::key_type key;
                    read(key);
                    read(value[std::move(key)]);
                } else {
                    read(value.emplace_back());
                }
            }
        }
    }
    std::string_view next(std::uint64_t size) {
        const std::string_view piece = bytes_.substr(0, static_cast<std::size_t>(size));
        bytes_.remove_prefix(piece.size());
        return piece;
    }

    std::string_view bytes_;
};

}  // namespace strakes
