// Converts MPI error codes to text and to error numbers of the system.
#pragma once

#include <string>
#include <string_view>

namespace strakes {

// Returns MPI's message for an error code, on one line.
[[nodiscard]] std::string words_of_mpi(int error);
// Returns the error number, or kUnnumbered if the error has no equivalent.
[[nodiscard]] int number_of_mpi(int error);
// Returns the error number whose system text or MPI error class appears in a message, or kUnnumbered.
[[nodiscard]] int number_in_words(std::string_view words);

}  // namespace strakes
