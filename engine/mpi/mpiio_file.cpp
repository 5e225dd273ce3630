// Calls MPI_File functions with explicit offsets.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <vector>

#include "mpi/libraries.hpp"

namespace strakes {

namespace {

struct Known {
    int kind;
    std::string_view name;
    int number;
};

// The error classes of some MPI libraries are not constants, so this table is not constexpr.
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

namespace {

// OMPIO, the MPI-IO of Open MPI, returns all hints that it was given, even unused hints. ROMIO under Open MPI adds
// hints such as romio_filesystem_type.
bool repeats_what_it_is_given([[maybe_unused]] const Hints& hints) {
#ifdef OPEN_MPI
    return std::ranges::none_of(hints, [](const auto& hint) { return hint.first == "romio_filesystem_type"; });
#else
    return false;
#endif
}

// Returns true for hints that Open MPI 4 or 5 reads itself, and for hints that PnetCDF adds.
bool is_known(std::string_view name) {
    constexpr std::array<std::string_view, 6> kKnown{"cb_buffer_size",       "cb_nodes",
                                                     "collective_buffering", "OMPIO_SHAREDFP_RELAXED_ORDERING",
                                                     "stripe_size",          "stripe_width"};
    return std::ranges::find(kKnown, name) != kKnown.end() || name.starts_with("nc_") || name.starts_with("pnetcdf_");
}

}  // namespace

Info::Info(const Hints& hints) {
    if (hints.empty()) return;
    MPI_Info_create(&info_);
    for (const auto& [name, value] : hints) MPI_Info_set(info_, name.c_str(), value.c_str());
}

Hints Info::hints() const {
    Hints found;
    int count = 0;
    if (info_ != MPI_INFO_NULL) MPI_Info_get_nkeys(info_, &count);
    for (int i = 0; i < count; ++i) {
        std::array<char, MPI_MAX_INFO_KEY + 1> name{};
        std::array<char, MPI_MAX_INFO_VAL + 1> value{};
        int there = 0;
        MPI_Info_get_nthkey(info_, i, name.data());
        MPI_Info_get(info_, name.data(), MPI_MAX_INFO_VAL, value.data(), &there);
        if (there != 0) found.emplace_back(name.data(), value.data());
    }
    std::ranges::sort(found);
    return found;
}

Hints in_effect(Hints told) {
    if (repeats_what_it_is_given(told)) std::erase_if(told, [](const auto& hint) { return !is_known(hint.first); });
    return told;
}

Hints hints_of(MPI_File file) {
    Info info;
    if (MPI_File_get_info(file, info.room()) != MPI_SUCCESS) return {};
    return in_effect(info.hints());
}

namespace {

class MpiioFile final : public LibraryFile {
  public:
    explicit MpiioFile(MPI_Comm everybody) : everybody_(everybody) {}

    FileStep open(const LibraryUse& use) override {
        int mode = MPI_MODE_RDONLY;
        if (use.writes) mode = use.reads ? MPI_MODE_RDWR : MPI_MODE_WRONLY;
        if (use.creates) mode |= MPI_MODE_CREATE;
        if (use.exclusively) mode |= MPI_MODE_EXCL;
        collective_ = use.collective;
        const Info info(use.hints);
        const int error =
            MPI_File_open(use.together ? everybody_ : MPI_COMM_SELF, use.path.c_str(), mode, info.get(), &file_);
        if (error != MPI_SUCCESS) file_ = MPI_FILE_NULL;  // After a failure, MPI leaves the handle undefined.
        return step("MPI_File_open", error);
    }
    [[nodiscard]] bool is_open() const override { return file_ != MPI_FILE_NULL; }
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) override {
        const auto place = static_cast<MPI_Offset>(offset);
        const int count = static_cast<int>(bytes);
        MPI_Status status;
        const int error = collective_ ? MPI_File_read_at_all(file_, place, to, count, MPI_BYTE, &status)
                                      : MPI_File_read_at(file_, place, to, count, MPI_BYTE, &status);
        return moved(error, status);
    }
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) override {
        const auto place = static_cast<MPI_Offset>(offset);
        const int count = static_cast<int>(bytes);
        MPI_Status status;
        const int error = collective_ ? MPI_File_write_at_all(file_, place, from, count, MPI_BYTE, &status)
                                      : MPI_File_write_at(file_, place, from, count, MPI_BYTE, &status);
        return moved(error, status);
    }
    FileStep synchronise() override { return step("MPI_File_sync", MPI_File_sync(file_)); }
    FileStep close() override {
        const int error = MPI_File_close(&file_);
        file_ = MPI_FILE_NULL;  // after a failure, ROMIO leaves the handle of a freed file
        return step("MPI_File_close", error);
    }
    void forget() override { file_ = MPI_FILE_NULL; }
    [[nodiscard]] Hints hints() override { return hints_of(file_); }

  private:
    FileStep step(const char* call, int error) {
        if (error == MPI_SUCCESS) return {call, 0};
        said_ = words_of_mpi(error);
        return {call, number_of_mpi(error)};
    }
    FileMove moved(int error, MPI_Status& status) {
        if (error != MPI_SUCCESS) {
            said_ = words_of_mpi(error);
            return {0, number_of_mpi(error)};
        }
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        return {bytes > 0 ? static_cast<std::size_t>(bytes) : 0, 0};
    }

    MPI_Comm everybody_;
    MPI_File file_ = MPI_FILE_NULL;
    bool collective_ = false;
};

}  // namespace

std::unique_ptr<LibraryFile> make_mpiio_file(MPI_Comm everybody) { return std::make_unique<MpiioFile>(everybody); }

}  // namespace strakes
