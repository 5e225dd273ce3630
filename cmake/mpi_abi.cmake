# strakes-engine-mpi, by mpicxx_abi. The wrapper is asked itself: FindMPI remembers one MPI for a project, and that is the site's.
if(NOT STRAKES_MPI MATCHES "^(auto|abi|both)$")
  return()
endif()
find_program(STRAKES_MPICXX_ABI NAMES mpicxx_abi HINTS "${strakes_python_programs}")
if(NOT STRAKES_MPICXX_ABI)
  if(STRAKES_MPI STREQUAL "abi")
    message(FATAL_ERROR "No MPI with the standard ABI: pip install 'mpich>=5' in the environment that builds.")
  endif()
  message(STATUS "No MPI with the standard ABI (pip install 'mpich>=5'): strakes-engine-mpi is not built.")
  return()
endif()

execute_process(COMMAND "${STRAKES_MPICXX_ABI}" -show OUTPUT_VARIABLE shown COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(shown UNIX_COMMAND "${shown}")
set(abi_folders ${shown})
list(FILTER abi_folders INCLUDE REGEX "^-L")
list(TRANSFORM abi_folders REPLACE "^-L" "")
set(abi_includes ${shown})
list(FILTER abi_includes INCLUDE REGEX "^-I")
list(TRANSFORM abi_includes REPLACE "^-I" "")
unset(abi_library CACHE) # the folder of an earlier build may have been a temporary one
find_library(abi_library mpi_abi PATHS ${abi_folders} NO_DEFAULT_PATH REQUIRED)

strakes_mpi_engine(strakes-engine-mpi)
# The header of the standard ABI instead of the library's own.
target_compile_definitions(strakes-engine-mpi PRIVATE MPI_ABI)
target_include_directories(strakes-engine-mpi SYSTEM PRIVATE ${abi_includes})
target_link_libraries(strakes-engine-mpi PRIVATE "${abi_library}")
# Installed as ENVIRONMENT/lib/pythonX.Y/site-packages/strakes/bin; the library is in ENVIRONMENT/lib.
set_target_properties(strakes-engine-mpi PROPERTIES INSTALL_RPATH "$ORIGIN/../../../.." LINK_OPTIONS "LINKER:--enable-new-dtags")
