// Splits a byte stream into lines.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace strakes {

class LineBuffer {
  public:
    // Maximum length of a line in bytes. next() returns kTooLong for a longer line and discards its contents.
    static constexpr std::size_t kMostCharacters = std::size_t{4} << 20U;

    static constexpr std::string_view kTooLong = "\x01";

    void add(std::string_view text) { text_.append(text); }
    // Mark the end of input. The last line needs no newline.
    void end() {
        if (skipping_ || (!text_.empty() && text_.back() != '\n')) text_.push_back('\n');
    }
    // Return the next complete line without its newline.
    std::optional<std::string> next() {
        const std::size_t end = text_.find('\n');
        if (end == std::string::npos) {
            if (text_.size() > kMostCharacters) {
                text_.clear();
                skipping_ = true;
            }
            return std::nullopt;
        }
        std::string line(skipping_ || end > kMostCharacters ? kTooLong : std::string_view(text_).substr(0, end));
        skipping_ = false;
        text_.erase(0, end + 1);
        return line;
    }

  private:
    std::string text_;
    bool skipping_ = false;
};

}  // namespace strakes
