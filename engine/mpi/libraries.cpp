// Makes the files of each library, and reports libraries that were not built in.
#include "mpi/libraries.hpp"

#include "backend/registry.hpp"
#include "mpi/mpiio_file.hpp"
#ifdef STRAKES_HDF5
#include "mpi/hdf5_file.hpp"
#endif
#ifdef STRAKES_PNETCDF
#include "mpi/pnetcdf_file.hpp"
#endif

namespace strakes {

std::unique_ptr<LibraryFile> MpiLibraries::file(Backend backend) {
#ifdef STRAKES_HDF5
    if (backend == Backend::hdf5) return std::make_unique<Hdf5File>(everybody_());
#endif
#ifdef STRAKES_PNETCDF
    if (backend == Backend::pnetcdf) return std::make_unique<PnetcdfFile>(everybody_());
#endif
    static_cast<void>(backend);
    return std::make_unique<MpiioFile>(everybody_());
}

// True for Open MPI: in OMPIO of Open MPI 4, an aggregator that cannot write leaves the data exchange early and reports
// no error.
bool MpiLibraries::keep_failures_quiet() const {
#ifdef OPEN_MPI
    return true;
#else
    return false;
#endif
}

Absence absence_of_library(Backend backend) {
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
    static_cast<void>(backend);
    return {};
}

}  // namespace strakes
