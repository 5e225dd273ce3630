// What MPI's error codes mean in words, and as numbers of the system where there is one.
#pragma once

#include <string>
#include <string_view>

namespace strakes {

// One line.
[[nodiscard]] std::string words_of_mpi(int error);
// kUnnumbered where there is none.
[[nodiscard]] int number_of_mpi(int error);
// Of another library's words about an error of MPI's, where they name its class.
[[nodiscard]] int number_in_words(std::string_view words);

}  // namespace strakes
