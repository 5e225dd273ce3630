# Parallel HDF5 and PnetCDF for strakes-engine-mpi-site, where they are; HDF5_ROOT and PNETCDF_DIR say where else to look.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_CXX)
check_cxx_source_compiles("#include <mpi.h>
  #ifndef OPEN_MPI
  #error
  #endif
  int main() {}" STRAKES_SITE_IS_OPEN_MPI)
# As Debian calls those of each MPI.
set(mpi_family mpich)
if(STRAKES_SITE_IS_OPEN_MPI)
  set(mpi_family openmpi)
endif()

function(strakes_mpi_library name define source)
  if(${define}_INCLUDE AND ${define}_LIBRARY)
    set(CMAKE_REQUIRED_INCLUDES "${${define}_INCLUDE}")
    set(CMAKE_REQUIRED_LIBRARIES "${${define}_LIBRARY}" MPI::MPI_CXX)
    check_cxx_source_compiles("${source}" ${define})
  endif()
  if(NOT ${define})
    message(STATUS "No ${name} for the site's MPI: strakes-engine-mpi-site is built without it.")
    return()
  endif()
  target_include_directories(strakes-engine-mpi-site SYSTEM PRIVATE "${${define}_INCLUDE}")
  target_compile_definitions(strakes-engine-mpi-site PRIVATE ${define})
  target_link_libraries(strakes-engine-mpi-site PRIVATE "${${define}_LIBRARY}")
endfunction()

find_path(STRAKES_HDF5_INCLUDE hdf5.h HINTS ENV HDF5_ROOT ENV HDF5_DIR PATH_SUFFIXES hdf5/${mpi_family} include)
find_library(STRAKES_HDF5_LIBRARY NAMES hdf5_${mpi_family} hdf5 HINTS ENV HDF5_ROOT ENV HDF5_DIR PATH_SUFFIXES lib lib64)
strakes_mpi_library("parallel HDF5" STRAKES_HDF5 "#include <hdf5.h>
  int main() { return H5Pset_fapl_mpio(0, MPI_COMM_SELF, MPI_INFO_NULL); }")

find_path(STRAKES_PNETCDF_INCLUDE pnetcdf.h HINTS ENV PNETCDF_DIR PATH_SUFFIXES include)
find_library(STRAKES_PNETCDF_LIBRARY pnetcdf HINTS ENV PNETCDF_DIR PATH_SUFFIXES lib lib64)
strakes_mpi_library("PnetCDF" STRAKES_PNETCDF "#include <mpi.h>
  #include <pnetcdf.h>
  int main() { return ncmpi_close(0) + NC_64BIT_DATA; }")
unset(CMAKE_REQUIRED_LIBRARIES)
