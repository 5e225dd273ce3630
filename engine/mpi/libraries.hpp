// The MPI-based libraries: MPI-IO, HDF5 and PnetCDF.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
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
    // Returns a pointer for an MPI call that creates the object.
    [[nodiscard]] MPI_Info* room() noexcept { return &info_; }
    [[nodiscard]] Hints hints() const;

  private:
    MPI_Info info_ = MPI_INFO_NULL;
};

// Returns the hints in effect among the hints that a library reports for an open file.
[[nodiscard]] Hints in_effect(Hints told);
[[nodiscard]] Hints hints_of(MPI_File file);

// Return a new file object. `everybody` is the communicator of the plan's ranks.
[[nodiscard]] std::unique_ptr<LibraryFile> make_mpiio_file(MPI_Comm everybody);
[[nodiscard]] std::unique_ptr<LibraryFile> make_hdf5_file(MPI_Comm everybody);
[[nodiscard]] std::unique_ptr<LibraryFile> make_pnetcdf_file(MPI_Comm everybody);

// Returns a factory of files for all libraries. `everybody` returns the communicator of the plan's ranks, and is called
// by the thread that may call MPI.
[[nodiscard]] std::unique_ptr<LibraryFiles> make_libraries(std::function<MPI_Comm()> everybody);

}  // namespace strakes
