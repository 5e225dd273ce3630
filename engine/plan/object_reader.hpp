// Strict reading of one JSON object: every fault is a Refusal that names the key.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace strakes {

// Reason for refusing a plan or a message. Thrown only while parsing, long before any timed section.
class Refusal : public std::exception {
  public:
    Refusal(std::string what, std::string key, std::string remedy)
        : what_(std::move(what)), key_(std::move(key)), remedy_(std::move(remedy)) {}
    [[nodiscard]] const char* what() const noexcept override { return what_.c_str(); }
    [[nodiscard]] const std::string& key() const noexcept { return key_; }
    [[nodiscard]] const std::string& remedy() const noexcept { return remedy_; }

  private:
    std::string what_, key_, remedy_;
};

class ObjectReader {
  public:
    // `path` is the key of the object itself, empty for the outermost one. Throws Refusal if the value is not an object
    // or has a key that is not in `allowed`.
    ObjectReader(const nlohmann::json& value, std::string path, std::initializer_list<std::string_view> allowed);

    [[nodiscard]] bool has(std::string_view key) const;
    [[nodiscard]] std::string path_of(std::string_view key) const;
    [[nodiscard]] const nlohmann::json& value(std::string_view key) const;

    [[nodiscard]] std::string string(std::string_view key) const;
    // Accepts 4.0, which JSON Schema counts as an integer.
    [[nodiscard]] std::uint64_t integer(std::string_view key, std::uint64_t least, std::uint64_t most) const;
    [[nodiscard]] double positive_number(std::string_view key, double most) const;

    [[nodiscard]] std::uint64_t integer_or(std::string_view key, std::uint64_t least, std::uint64_t most,
                                           std::uint64_t otherwise) const {
        return has(key) ? integer(key, least, most) : otherwise;
    }
    [[nodiscard]] bool boolean(std::string_view key) const;
    [[nodiscard]] bool boolean_or(std::string_view key, bool otherwise) const {
        return has(key) ? boolean(key) : otherwise;
    }

    // Return the value of one of the names in a table of (name, value) pairs.
    template <class Table>
    [[nodiscard]] auto choice(std::string_view key, const Table& table) const {
        const std::string given = string(key);
        std::string known;
        for (const auto& [name, candidate] : table) {
            if (given == name) return candidate;
            known.append(known.empty() ? "" : ", ").append(name);
        }
        refuse(key, "has the value '" + given + "', which is none of those known", "One of: " + known + ".");
    }

    [[noreturn]] void refuse(std::string_view key, std::string_view fault, std::string remedy) const;

  private:
    const nlohmann::json* object_;
    std::string path_;
};

}  // namespace strakes
