// The MPI-IO, HDF5 and PnetCDF files of the ranks of a plan.
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <utility>

#include "backend/library_file.hpp"

namespace strakes {

class MpiLibraries final : public LibraryFiles {
  public:
    // `everybody` returns the communicator of the plan's ranks. It is called by the thread that may call MPI.
    explicit MpiLibraries(std::function<MPI_Comm()> everybody) : everybody_(std::move(everybody)) {}

    [[nodiscard]] std::unique_ptr<LibraryFile> file(Backend backend) override;
    [[nodiscard]] bool keep_failures_quiet() const override;

  private:
    std::function<MPI_Comm()> everybody_;
};

}  // namespace strakes
