// Creates the file objects of each library, and reports libraries that were not built in.
#include "mpi/libraries.hpp"

#include <utility>

#include "backend/registry.hpp"

namespace strakes {

namespace {

class MpiLibraries final : public LibraryFiles {
  public:
    explicit MpiLibraries(std::function<MPI_Comm()> everybody) : everybody_(std::move(everybody)) {}

    [[nodiscard]] std::unique_ptr<LibraryFile> file([[maybe_unused]] Backend backend) override {
#ifdef STRAKES_HDF5
        if (backend == Backend::hdf5) return make_hdf5_file(everybody_());
#endif
#ifdef STRAKES_PNETCDF
        if (backend == Backend::pnetcdf) return make_pnetcdf_file(everybody_());
#endif
        return make_mpiio_file(everybody_());
    }
    // True for Open MPI: in OMPIO of Open MPI 4, an aggregator that cannot write leaves the data exchange early and
    // reports no error.
    [[nodiscard]] bool keep_failures_quiet() const override {
#ifdef OPEN_MPI
        return true;
#else
        return false;
#endif
    }

  private:
    std::function<MPI_Comm()> everybody_;
};

}  // namespace

std::unique_ptr<LibraryFiles> make_libraries(std::function<MPI_Comm()> everybody) {
    return std::make_unique<MpiLibraries>(std::move(everybody));
}

Absence absence_of_library([[maybe_unused]] Backend backend) {
#ifndef STRAKES_HDF5
    if (backend == Backend::hdf5) {
        return {"this engine was built without parallel HDF5",
                "Install it for the site's MPI (Debian with Open MPI: libhdf5-openmpi-dev) and build "
                "strakes-engine-mpi-site again (docs/guide/mpi.md)."};
    }
#endif
#ifndef STRAKES_PNETCDF
    if (backend == Backend::pnetcdf) {
        return {"this engine was built without PnetCDF",
                "Install it for the site's MPI (Debian with Open MPI: libpnetcdf-dev) and build "
                "strakes-engine-mpi-site again (docs/guide/mpi.md)."};
    }
#endif
    return {};
}

}  // namespace strakes
