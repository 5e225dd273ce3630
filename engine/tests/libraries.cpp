// Lets the parser accept plans for all libraries. These tests do not call the libraries.
#include "backend/registry.hpp"

namespace strakes {

Absence absence_of_library(Backend /*backend*/) { return {}; }

}  // namespace strakes
