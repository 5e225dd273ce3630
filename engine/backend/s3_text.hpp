// What answers of an object store say, in the few forms of XML that they have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strakes {

// The text of the first element of that name, its references resolved; empty where there is none.
[[nodiscard]] std::string xml_text(std::string_view document, std::string_view element);
// The contents of all elements of that name.
[[nodiscard]] std::vector<std::string_view> xml_elements(std::string_view document, std::string_view element);
// As the text of an element.
[[nodiscard]] std::string xml_escaped(std::string_view text);

// The server's own words for a person: status, code and message, without what a terminal would obey.
[[nodiscard]] std::string server_words(long status, std::string_view document);
// The error number that says most nearly the same.
[[nodiscard]] int error_of_status(long status, std::string_view document);

}  // namespace strakes
