// Encodes S3 requests and parses responses. Reads only XML elements without attributes, as these responses contain.
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <utility>

#include "backend/s3_connection.hpp"
#include "system/hmac.hpp"

namespace strakes {

namespace {

std::string_view bytes_of(const Digest& digest) {
    return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string hex(std::string_view bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (const char byte : bytes) {
        text += kDigits[static_cast<unsigned char>(byte) >> 4U];
        text += kDigits[static_cast<unsigned char>(byte) & 15U];
    }
    return text;
}

std::string keyed(std::string_view key, std::string_view text) { return std::string(bytes_of(hmac_sha256(key, text))); }

}  // namespace

std::string uri_encoded(std::string_view text, bool keep_slash) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string encoded;
    for (const char letter : text) {
        const auto byte = static_cast<unsigned char>(letter);
        const bool plain =
            (byte < 0x80 && std::isalnum(byte) != 0) || std::string_view("-._~").find(letter) != std::string_view::npos;
        if (plain || (keep_slash && letter == '/')) {
            encoded += letter;
        } else {
            encoded += '%';
            encoded += kDigits[byte >> 4U];
            encoded += kDigits[byte & 15U];
        }
    }
    return encoded;
}

std::string query_text(const NamedTexts& query) {
    NamedTexts encoded;
    for (const auto& [name, value] : query) encoded.emplace_back(uri_encoded(name, false), uri_encoded(value, false));
    std::ranges::sort(encoded);
    std::string text;
    for (const auto& [name, value] : encoded)
        text.append(text.empty() ? "" : "&").append(name).append("=").append(value);
    return text;
}

std::string hex_sha256(std::string_view text) { return hex(bytes_of(sha256(text))); }

std::string S3Signer::authorization(S3Request& request, std::string_view time) {
    std::ranges::sort(request.headers);
    std::string headers, names, body;
    for (const auto& [name, value] : request.headers) {
        headers.append(name).append(":").append(value).append("\n");
        names.append(names.empty() ? "" : ";").append(name);
        if (name == "x-amz-content-sha256") body = value;
    }
    const std::string canonical = std::string(request.method) + "\n" + request.path + "\n" + query_text(request.query) +
                                  "\n" + headers + "\n" + names + "\n" + body;
    const std::string day(time.substr(0, 8));
    const std::string scope = day + "/" + region_ + "/s3/aws4_request";
    if (day != day_) {
        key_of_day_ = keyed(keyed(keyed(keyed("AWS4" + secret_, day), region_), "s3"), "aws4_request");
        day_ = day;
    }
    const std::string to_sign = "AWS4-HMAC-SHA256\n" + std::string(time) + "\n" + scope + "\n" + hex_sha256(canonical);
    return "AWS4-HMAC-SHA256 Credential=" + key_ + "/" + scope + ",SignedHeaders=" + names +
           ",Signature=" + hex(keyed(key_of_day_, to_sign));
}

namespace {

constexpr std::size_t kMostWords = 300;

constexpr std::array kReferences = std::to_array<std::pair<std::string_view, char>>(
    {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}, {"&#34;", '"'}, {"&#39;", '\''}});

auto reference_of(std::string_view text) {
    return std::ranges::find_if(kReferences, [&](const auto& known) { return text.starts_with(known.first); });
}

std::string resolved(std::string_view text) {
    std::string plain;
    while (!text.empty()) {
        const auto* known = reference_of(text);
        plain += known != kReferences.end() ? known->second : text.front();
        text.remove_prefix(known != kReferences.end() ? known->first.size() : 1);
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

bool xml_is_list(std::string_view document, const std::string& root, std::string_view element,
                 std::string_view prefix) {
    document = document.substr(0, document.find_last_not_of(" \r\n\t") + 1);
    const std::string more = xml_text(document, "IsTruncated"), opening = "<" + std::string(element);
    const auto items = xml_elements(document, element);
    std::size_t begun = 0;
    for (std::string_view rest = document; !rest.empty(); rest.remove_prefix(1)) {
        if (rest.starts_with(opening) && rest.substr(opening.size(), 1).find_first_of("/> \r\n\t") == 0) ++begun;
        const bool unknown =
            rest.starts_with('&') && !rest.starts_with("&#") && reference_of(rest) == kReferences.end();
        if (unknown || rest.starts_with("<!")) return false;
    }
    return document.find("<" + root) != std::string_view::npos && document.ends_with("</" + root + ">") &&
           (more == "true" || more == "false") && begun == items.size() &&
           std::ranges::all_of(items, [&](auto item) { return xml_text(item, "Key").starts_with(prefix); });
}

std::string xml_escaped(std::string_view text) {
    std::string escaped;
    for (const char letter : text) {
        const auto* known = std::ranges::find(kReferences, letter, &decltype(kReferences)::value_type::second);
        escaped += known != kReferences.end() ? known->first : std::string_view(&letter, 1);
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
