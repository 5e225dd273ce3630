// The mode of the engine that `strakes clean` calls for objects that a plan has left in a bucket.
#pragma once

#include <string>

namespace strakes {

// Removes what is below the prefix DIRECTORY/ID/ if it has the marker of strakes. Prints a line of JSON:
// {"removed": 3}, or {"why": ...} for what is left. Returns the exit status, 0 or 1.
int remove_objects(const std::string& prefix);

}  // namespace strakes
