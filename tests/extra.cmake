# Tests that are not GoogleTest programs. Exit status 77 means skipped, and the last line says why.
find_program(BASH_PROGRAM bash REQUIRED)
function(mote_script_test name)
  add_test(NAME ${name} COMMAND ${ARGN} COMMAND_EXPAND_LISTS)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${MOTE_TEST_TIMEOUT} SKIP_RETURN_CODE 77 LABELS script)
endfunction()

add_executable(isa_list support/isa_list_main.cpp)
mote_test_target(isa_list)

# Counts every allocation and new thread, and so cannot share a program with other tests.
add_executable(no_allocation_test golden/no_allocation.cpp)
mote_test_target(no_allocation_test)
target_link_libraries(no_allocation_test PRIVATE GTest::gtest GTest::gtest_main ${CMAKE_DL_LIBS})
target_compile_options(no_allocation_test PRIVATE -fno-builtin)  # calls to malloc stay where they are
gtest_discover_tests(no_allocation_test PROPERTIES TIMEOUT ${MOTE_TEST_TIMEOUT} LABELS per_isa)

include(kernels/simd.cmake)

# Folders include only what they may.
mote_script_test(arrows ${BASH_PROGRAM} ${CMAKE_CURRENT_SOURCE_DIR}/arrows/arrows.sh ${PROJECT_SOURCE_DIR})
mote_script_test(arrows.finds_faults ${BASH_PROGRAM} ${CMAKE_CURRENT_SOURCE_DIR}/arrows/arrows_test.sh)

# Objects: nothing weak in a kernel, the instructions that an instruction set is named for, and in the library no call
# that prints, exits, throws or reads the environment.
set(symbols ${BASH_PROGRAM} ${CMAKE_CURRENT_SOURCE_DIR}/symbols/symbols.sh)
foreach(isa scalar sse2 avx2 avxvnni avx512 avx512vnni neon neon_dot neon_i8mm)
  if(TARGET mote_kernels_${isa})
    mote_script_test(symbols.${isa} ${symbols} kernels ${isa} ${CMAKE_NM} ${CMAKE_OBJDUMP}
                     $<TARGET_OBJECTS:mote_kernels_${isa}>)
  endif()
endforeach()
mote_script_test(symbols.library ${symbols} library ${CMAKE_NM} $<TARGET_FILE:mote>)

# The installed library from other people's projects: CMake package and pkg-config, static and shared, C only.
if(NOT CMAKE_CROSSCOMPILING)
  mote_script_test(package ${CMAKE_COMMAND} -E env "CC=${CMAKE_C_COMPILER}" "CFLAGS=${CMAKE_C_FLAGS}"
                   "CMAKE=${CMAKE_COMMAND}" ${BASH_PROGRAM} ${CMAKE_CURRENT_SOURCE_DIR}/package/package.sh
                   ${PROJECT_BINARY_DIR} $<BOOL:${MOTE_BUILD_SHARED}>)
endif()

# The examples and the one in the README, as C99, linked by the C compiler.
file(READ ${PROJECT_SOURCE_DIR}/README.md readme)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/README.md)
string(REGEX MATCH "```c\n[^`]*```" example "${readme}")
string(REGEX REPLACE "```c?\n?" "" example "${example}")
if(NOT example MATCHES "int main")
  message(FATAL_ERROR "README.md has no C example with a main function")
endif()
file(CONFIGURE OUTPUT readme_example.c CONTENT "${example}" @ONLY)
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source ${examples} ${CMAKE_CURRENT_BINARY_DIR}/readme_example.c)
  get_filename_component(name ${source} NAME_WE)
  set(target example_${name})
  add_executable(${target} ${source})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C C_EXTENSIONS OFF OUTPUT_NAME ${name}
                        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_compile_options(${target} PRIVATE -pedantic-errors)
  target_link_libraries(${target} PRIVATE mote)
endforeach()
set(run ${BASH_PROGRAM} ${CMAKE_CURRENT_SOURCE_DIR}/package/run_example.sh)
foreach(name generate readme_example)
  mote_script_test(example.${name} ${run} $<TARGET_FILE:example_${name}>)
endforeach()
