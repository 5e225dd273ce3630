// Parses the XML responses of object stores.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strakes {

// Returns the text of the first element with that name, its entities resolved; empty if the document has none.
[[nodiscard]] std::string xml_text(std::string_view document, std::string_view element);
// Returns the contents of all elements with that name.
[[nodiscard]] std::vector<std::string_view> xml_elements(std::string_view document, std::string_view element);
// Escapes text for an element.
[[nodiscard]] std::string xml_escaped(std::string_view text);

// Returns a line with the server's status, code and message, shortened and without control characters.
[[nodiscard]] std::string server_words(long status, std::string_view document);
// Returns the error number closest to the server's status.
[[nodiscard]] int error_of_status(long status, std::string_view document);

}  // namespace strakes
