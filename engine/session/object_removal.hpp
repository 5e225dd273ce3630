// Engine mode used by `strakes clean` to delete objects that a plan left in a bucket.
#pragma once

#include <string>

namespace strakes {

// Delete all objects under the prefix DIRECTORY/ID/ if it holds the marker of strakes. Print one line of JSON:
// {"removed": 3} or {"why": ...} on failure. Return the exit status, 0 or 1.
int remove_objects(const std::string& prefix);

}  // namespace strakes
