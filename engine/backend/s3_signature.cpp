// Names follow the specification.
#include "backend/s3_signature.hpp"

#include <algorithm>
#include <cctype>

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

}  // namespace strakes
