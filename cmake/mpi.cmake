# The engines whose ranks are processes, each where there is an MPI to build it with:
#     strakes-engine-mpi       the standard ABI of MPI, as the mpich package of PyPI has it: one executable for MPICH 5, Intel MPI and all that follow it;
#     strakes-engine-mpi-site  the site's MPI (Open MPI 4 and 5, Cray, older MPICH) by its own mpicxx.
# STRAKES_MPI chooses: abi, system, both (each that is there), auto (abi where it is), off. All else is compiled once for both.

# The programs of the environment that is being built for, which need not be on PATH. Its mpicxx, if it has one, is not the site's.
foreach(python IN ITEMS "${Python3_EXECUTABLE}" "${Python_EXECUTABLE}" "${PYTHON_EXECUTABLE}")
  if(python)
    get_filename_component(strakes_python_programs "${python}" DIRECTORY)
  endif()
endforeach()

function(strakes_mpi_engine name)
  file(GLOB mpi_sources CONFIGURE_DEPENDS engine/mpi/*.cpp)
  add_executable(${name} engine/main.cpp ${mpi_sources})
  target_compile_definitions(${name} PRIVATE STRAKES_VERSION="${strakes_version}")
  target_link_libraries(${name} PRIVATE strakes_core)
  target_link_options(${name} PRIVATE "LINKER:--dynamic-list=${CMAKE_CURRENT_SOURCE_DIR}/engine/mpi/shared_names.list")
  install(TARGETS ${name} RUNTIME DESTINATION strakes/bin)
endfunction()

include(cmake/mpi_abi.cmake)
include(cmake/mpi_site.cmake)
