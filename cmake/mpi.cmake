# strakes-engine-mpi, where there is an MPI to build it with.
# auto, abi: the standard ABI, as the mpich package of PyPI has it: one executable for MPICH 5, Intel MPI and all that follow the standard.
# system: the site's MPI (Open MPI 4 and 5, Cray, older MPICH) by its own mpicxx; the executable is then tied to it.
if(STRAKES_MPI MATCHES "^(auto|abi)$")
  # The one of the environment that is being built for, also when its folder of programs is not on PATH.
  get_filename_component(strakes_python_programs "${Python3_EXECUTABLE}${PYTHON_EXECUTABLE}${Python_EXECUTABLE}" DIRECTORY)
  find_program(STRAKES_MPICXX NAMES mpicxx_abi HINTS "${strakes_python_programs}")
elseif(STRAKES_MPI STREQUAL "system")
  find_program(STRAKES_MPICXX NAMES mpicxx CC mpiicpx)
elseif(NOT STRAKES_MPI STREQUAL "off")
  message(FATAL_ERROR "STRAKES_MPI is \"${STRAKES_MPI}\": one of auto, abi, system, off.")
endif()
if(NOT STRAKES_MPICXX)
  if(STRAKES_MPI MATCHES "^(abi|system)$")
    message(FATAL_ERROR "No MPI. For abi: pip install 'mpich>=5' in the environment that builds; for system: load the site's MPI, so that mpicxx is on PATH.")
  endif()
  message(STATUS "No MPI with the standard ABI (pip install 'mpich>=5'): strakes-engine-mpi is not built.")
  return()
endif()

set(MPI_CXX_COMPILER "${STRAKES_MPICXX}")
set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI REQUIRED COMPONENTS CXX)
# What the wrapper says of run paths: that of the build may be a temporary one.
set_property(TARGET MPI::MPI_CXX PROPERTY INTERFACE_LINK_OPTIONS "")

file(GLOB mpi_sources CONFIGURE_DEPENDS engine/mpi/*.cpp)
add_executable(strakes-engine-mpi engine/main.cpp ${mpi_sources})
target_compile_definitions(strakes-engine-mpi PRIVATE STRAKES_VERSION="${strakes_version}")
target_link_libraries(strakes-engine-mpi PRIVATE strakes_core)
# MPI's headers are not ours to warn about.
get_target_property(mpi_include MPI::MPI_CXX INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(strakes-engine-mpi SYSTEM PRIVATE ${mpi_include})
target_link_libraries(strakes-engine-mpi PRIVATE MPI::MPI_CXX)
if(STRAKES_MPI STREQUAL "system")
  set_target_properties(strakes-engine-mpi PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
else()
  # What the wrapper adds, which CMake does not see: the header of the standard ABI instead of the library's own.
  target_compile_definitions(strakes-engine-mpi PRIVATE MPI_ABI)
  # Installed as ENVIRONMENT/lib/pythonX.Y/site-packages/strakes/bin; the library is in ENVIRONMENT/lib.
  set_target_properties(strakes-engine-mpi PROPERTIES INSTALL_RPATH "$ORIGIN/../../../.." LINK_OPTIONS "LINKER:--enable-new-dtags")
endif()
install(TARGETS strakes-engine-mpi RUNTIME DESTINATION strakes/bin)
