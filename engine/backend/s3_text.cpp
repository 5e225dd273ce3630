// Reads only elements without attributes, the one form of XML in the S3 responses that are parsed here.
#include "backend/s3_text.hpp"

#include <array>
#include <cctype>
#include <cerrno>
#include <utility>

namespace strakes {

namespace {

constexpr std::size_t kMostWords = 300;

constexpr std::array kReferences = std::to_array<std::pair<std::string_view, char>>(
    {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}});

std::string resolved(std::string_view text) {
    std::string plain;
    while (!text.empty()) {
        std::size_t taken = 1;
        char letter = text.front();
        for (const auto& [reference, meaning] : kReferences) {
            if (!text.starts_with(reference)) continue;
            taken = reference.size();
            letter = meaning;
            break;
        }
        plain += letter;
        text.remove_prefix(taken);
    }
    return plain;
}

}  // namespace

std::vector<std::string_view> xml_elements(std::string_view document, std::string_view element) {
    const std::string opening = "<" + std::string(element) + ">";
    const std::string closing = "</" + std::string(element) + ">";
    std::vector<std::string_view> contents;
    for (;;) {
        const std::size_t begin = document.find(opening);
        if (begin == std::string_view::npos) return contents;
        document.remove_prefix(begin + opening.size());
        const std::size_t end = document.find(closing);
        if (end == std::string_view::npos) return contents;
        contents.push_back(document.substr(0, end));
        document.remove_prefix(end + closing.size());
    }
}

std::string xml_text(std::string_view document, std::string_view element) {
    const std::vector<std::string_view> contents = xml_elements(document, element);
    return contents.empty() ? std::string() : resolved(contents.front());
}

std::string xml_escaped(std::string_view text) {
    std::string escaped;
    for (const char letter : text) {
        if (letter == '&')
            escaped += "&amp;";
        else if (letter == '<')
            escaped += "&lt;";
        else if (letter == '>')
            escaped += "&gt;";
        else
            escaped += letter;
    }
    return escaped;
}

std::string server_words(long status, std::string_view document) {
    std::string words = "status " + std::to_string(status);
    const std::string code = xml_text(document, "Code"), message = xml_text(document, "Message");
    if (!code.empty()) words += ", " + code;
    if (!message.empty()) words += ": " + message;
    for (char& letter : words)
        if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = ' ';
    if (words.size() > kMostWords) words.resize(kMostWords);
    return "the server says: " + words;
}

int error_of_status(long status, std::string_view document) {
    constexpr auto kKnown = std::to_array<std::pair<long, int>>({{200, EIO},  // CompleteMultipartUpload failed
                                                                 {400, EINVAL},
                                                                 {401, EACCES},
                                                                 {403, EACCES},
                                                                 {404, ENOENT},
                                                                 {409, EEXIST},
                                                                 {412, EEXIST},
                                                                 {413, EFBIG},
                                                                 {429, EBUSY},
                                                                 {503, EBUSY},
                                                                 {507, ENOSPC}});
    if (xml_text(document, "Code") == "QuotaExceeded") return EDQUOT;
    for (const auto& [known, error] : kKnown)
        if (known == status) return error;
    return EIO;
}

}  // namespace strakes
