# The man pages of all commands, by click-man; left out where it is not.
set(man_python "${Python3_EXECUTABLE}")
if(NOT man_python)
  set(man_python "${PYTHON_EXECUTABLE}")
endif()
execute_process(COMMAND "${man_python}" -c "import click_man" RESULT_VARIABLE man_lacks OUTPUT_QUIET ERROR_QUIET)
if(man_lacks)
  message(STATUS "No click-man (pip install click-man): the man pages are not made.")
  return()
endif()
add_custom_command(OUTPUT "${CMAKE_BINARY_DIR}/man/strakes.1"
  COMMAND "${man_python}" "${CMAKE_SOURCE_DIR}/packaging/man.py" "${CMAKE_BINARY_DIR}/man" VERBATIM)
add_custom_target(strakes-man ALL DEPENDS "${CMAKE_BINARY_DIR}/man/strakes.1")
install(DIRECTORY "${CMAKE_BINARY_DIR}/man/" DESTINATION "${SKBUILD_DATA_DIR}/share/man/man1")
