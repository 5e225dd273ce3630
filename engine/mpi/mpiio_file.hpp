// A file that is read and written through MPI-IO.
#pragma once

#include <mpi.h>

#include <string>
#include <string_view>

#include "backend/library_file.hpp"
#include "plan/plan.hpp"

namespace strakes {

// Returns MPI's message for an error code, on one line.
[[nodiscard]] std::string words_of_mpi(int error);
// Returns the error number, or kUnnumbered if the error has no equivalent.
[[nodiscard]] int number_of_mpi(int error);
// Returns the error number whose system text or MPI error class appears in a message, or kUnnumbered.
[[nodiscard]] int number_in_words(std::string_view words);

// Owns an MPI_Info object.
class Info {
  public:
    Info() = default;
    explicit Info(const Hints& hints);
    Info(const Info&) = delete;
    Info& operator=(const Info&) = delete;
    ~Info() {
        if (info_ != MPI_INFO_NULL) MPI_Info_free(&info_);
    }
    [[nodiscard]] MPI_Info get() const noexcept { return info_; }
    // For a call that sets the object.
    [[nodiscard]] MPI_Info* room() noexcept { return &info_; }
    // Returns the hints, sorted by name.
    [[nodiscard]] Hints hints() const;

  private:
    MPI_Info info_ = MPI_INFO_NULL;
};

// Returns the hints in effect among the hints that a library reports for an open file.
[[nodiscard]] Hints in_effect(Hints told);
[[nodiscard]] Hints hints_of(MPI_File file);

class MpiioFile final : public LibraryFile {
  public:
    // `everybody`: the ranks of the plan.
    explicit MpiioFile(MPI_Comm everybody) : everybody_(everybody) {}

    FileStep open(const LibraryUse& use) override;
    [[nodiscard]] bool is_open() const override { return file_ != MPI_FILE_NULL; }
    FileMove read_at(std::byte* to, std::size_t bytes, std::uint64_t offset) override;
    FileMove write_at(const std::byte* from, std::size_t bytes, std::uint64_t offset) override;
    FileStep synchronise() override { return step("MPI_File_sync", MPI_File_sync(file_)); }
    FileStep close() override;
    void forget() override { file_ = MPI_FILE_NULL; }
    [[nodiscard]] Hints hints() override;

  private:
    FileStep step(const char* call, int error);
    FileMove moved(int error, MPI_Status& status);

    MPI_Comm everybody_;
    MPI_File file_ = MPI_FILE_NULL;
    bool collective_ = false;
};

}  // namespace strakes
