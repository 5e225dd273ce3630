// Maps the error classes of MPI files (MPI 4.1, chapter 14) to error numbers.
#include "mpi/error.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "backend/library_file.hpp"

namespace strakes {

namespace {

struct Known {
    int kind;
    std::string_view name;
    int number;
};

// Not constexpr, since the error classes of some MPI libraries are not constants.
const std::array kKnown = std::to_array<Known>({
    {MPI_ERR_ACCESS, "MPI_ERR_ACCESS", EACCES},
    {MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE", EINVAL},
    {MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS", EEXIST},
    {MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE", EBUSY},
    {MPI_ERR_IO, "MPI_ERR_IO", EIO},
    {MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM", ENOMEM},
    {MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE", ENOSPC},
    {MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE", ENOENT},
    {MPI_ERR_QUOTA, "MPI_ERR_QUOTA", EDQUOT},
    {MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY", EROFS},
    {MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION", EOPNOTSUPP},
});

// Errors whose system text may appear in the messages of a library.
constexpr std::array kSaid{ENOSPC, EDQUOT, EROFS,  EFBIG,  ENOENT,   ENOTDIR,   EACCES, EPERM,
                           EMFILE, ENFILE, ENOMEM, ESTALE, ENOTCONN, ETIMEDOUT, ENXIO,  EIO};

}  // namespace

std::string words_of_mpi(int error) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int size = 0;
    MPI_Error_string(error, text.data(), &size);
    std::string words(text.data(), static_cast<std::size_t>(size));
    std::ranges::replace(words, '\n', ' ');
    while (!words.empty() && words.back() == ' ') words.pop_back();
    return words;
}

// ROMIO reports most errors as MPI_ERR_IO, with the system's error text in the message.
int number_of_mpi(int error) {
    int kind = MPI_ERR_UNKNOWN;
    MPI_Error_class(error, &kind);
    const auto* found = std::ranges::find(kKnown, kind, &Known::kind);
    if (found != kKnown.end() && kind != MPI_ERR_IO) return found->number;
    const int number = number_in_words(words_of_mpi(error));
    return number == kUnnumbered && kind == MPI_ERR_IO ? EIO : number;
}

int number_in_words(std::string_view words) {
    const auto says = [words](std::string_view text) { return words.find(text) != std::string_view::npos; };
    for (const int number : kSaid)
        if (says(std::system_category().message(number))) return number;
    const auto* found = std::ranges::find_if(kKnown, [&](const Known& one) { return says(one.name); });
    return found == kKnown.end() ? kUnnumbered : found->number;
}

}  // namespace strakes
