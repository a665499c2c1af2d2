# Third-party code, from installed packages; with MOTE_FETCH_DEPENDENCIES=ON what is missing is fetched instead (or
# taken from FETCHCONTENT_SOURCE_DIR_<NAME>). Defines
#   mote_dependencies   what the library's sources need: utf8proc, threads, cpuinfo where there is one
#   XSIMD_INCLUDE_DIR   for kernels/simd.h
#   nlohmann_json::nlohmann_json, CLI11::CLI11 for the tool; GTest::..., benchmark::... for the tests
include(FetchContent)
option(MOTE_USE_CPUINFO "Ask cpuinfo, where it is installed, about cores and caches" ON)
set(MOTE_BUNDLED_OBJECTS "")  # objects of fetched libraries that become part of libmote
set(MOTE_PKGCONFIG_LIBS "")   # what a static libmote needs at link time

# Sources of one dependency, without its own build files: a source folder in <name>_SOURCE_DIR.
function(mote_fetch_sources name repository tag)
  if(NOT MOTE_FETCH_DEPENDENCIES)
    message(FATAL_ERROR "${name} is missing: install ${ARGN}, or set -DMOTE_FETCH_DEPENDENCIES=ON")
  endif()
  message(STATUS "${name}: fetching ${tag}")
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON SOURCE_SUBDIR none)
  FetchContent_MakeAvailable(${name})
  set(${name}_SOURCE_DIR ${${name}_SOURCE_DIR} PARENT_SCOPE)
endfunction()

function(mote_header_library target source_dir)
  add_library(mote_${target} INTERFACE)
  target_include_directories(mote_${target} SYSTEM INTERFACE ${source_dir}/include)
  add_library(${target}::${target} ALIAS mote_${target})
endfunction()

# ---- The library ----

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
add_library(mote_dependencies INTERFACE)
target_link_libraries(mote_dependencies INTERFACE Threads::Threads m)

find_path(UTF8PROC_INCLUDE_DIR utf8proc.h)
find_library(UTF8PROC_LIBRARY utf8proc)
mark_as_advanced(UTF8PROC_INCLUDE_DIR UTF8PROC_LIBRARY)
if(UTF8PROC_INCLUDE_DIR AND UTF8PROC_LIBRARY)
  target_include_directories(mote_dependencies SYSTEM INTERFACE ${UTF8PROC_INCLUDE_DIR})
  target_link_libraries(mote_dependencies INTERFACE ${UTF8PROC_LIBRARY})
  list(APPEND MOTE_PKGCONFIG_LIBS -lutf8proc)
else()
  mote_fetch_sources(utf8proc https://github.com/JuliaStrings/utf8proc.git v2.9.0 libutf8proc-dev)
  add_library(mote_utf8proc OBJECT ${utf8proc_SOURCE_DIR}/utf8proc.c)
  target_compile_definitions(mote_utf8proc PUBLIC UTF8PROC_STATIC)
  target_compile_options(mote_utf8proc PRIVATE -w -fvisibility=hidden)
  target_include_directories(mote_utf8proc SYSTEM PUBLIC ${utf8proc_SOURCE_DIR})
  target_compile_definitions(mote_dependencies INTERFACE UTF8PROC_STATIC)
  target_include_directories(mote_dependencies SYSTEM INTERFACE ${utf8proc_SOURCE_DIR})
  list(APPEND MOTE_BUNDLED_OBJECTS $<TARGET_OBJECTS:mote_utf8proc>)
endif()

if(MOTE_USE_CPUINFO)
  find_path(CPUINFO_INCLUDE_DIR cpuinfo.h)
  find_library(CPUINFO_LIBRARY cpuinfo)
  mark_as_advanced(CPUINFO_INCLUDE_DIR CPUINFO_LIBRARY)
endif()
if(MOTE_USE_CPUINFO AND CPUINFO_INCLUDE_DIR AND CPUINFO_LIBRARY)
  target_compile_definitions(mote_dependencies INTERFACE MOTE_HAVE_CPUINFO=1)
  target_include_directories(mote_dependencies SYSTEM INTERFACE ${CPUINFO_INCLUDE_DIR})
  target_link_libraries(mote_dependencies INTERFACE ${CPUINFO_LIBRARY})
  list(APPEND MOTE_PKGCONFIG_LIBS -lcpuinfo)
endif()

find_path(XSIMD_INCLUDE_DIR xsimd/xsimd.hpp)
if(NOT XSIMD_INCLUDE_DIR)
  mote_fetch_sources(xsimd https://github.com/xtensor-stack/xsimd.git 13.2.0 libxsimd-dev)
  set(XSIMD_INCLUDE_DIR ${xsimd_SOURCE_DIR}/include)
endif()
file(STRINGS ${XSIMD_INCLUDE_DIR}/xsimd/config/xsimd_config.hpp version REGEX "define XSIMD_VERSION_M")
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" XSIMD_VERSION "${version}")
if(XSIMD_VERSION VERSION_LESS 8.1)
  message(FATAL_ERROR "xsimd ${XSIMD_VERSION} in ${XSIMD_INCLUDE_DIR} is too old: 8.1 or newer is needed")
endif()

# ---- The tool ----

if(MOTE_BUILD_TOOLS)
  find_package(nlohmann_json 3.9 QUIET)
  if(NOT TARGET nlohmann_json::nlohmann_json)
    mote_fetch_sources(nlohmann_json https://github.com/nlohmann/json.git v3.11.3 nlohmann-json3-dev)
    mote_header_library(nlohmann_json ${nlohmann_json_SOURCE_DIR})
  endif()
  find_package(CLI11 2.1 QUIET)
  if(NOT TARGET CLI11::CLI11)
    mote_fetch_sources(cli11 https://github.com/CLIUtils/CLI11.git v2.4.2 libcli11-dev)
    mote_header_library(CLI11 ${cli11_SOURCE_DIR})
  endif()
endif()

# ---- The tests ----

function(mote_fetch_project name repository tag)
  if(NOT MOTE_FETCH_DEPENDENCIES)
    message(FATAL_ERROR "${name} is missing: install ${ARGN}, or set -DMOTE_FETCH_DEPENDENCIES=ON")
  endif()
  message(STATUS "${name}: fetching ${tag}")
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
  set(INSTALL_GTEST OFF)
  set(BENCHMARK_ENABLE_TESTING OFF)
  set(BENCHMARK_ENABLE_INSTALL OFF)
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON)
  FetchContent_MakeAvailable(${name})
endfunction()

if(MOTE_BUILD_TESTS)
  find_package(GTest QUIET)
  if(NOT TARGET GTest::gmock)
    mote_fetch_project(googletest https://github.com/google/googletest.git release-1.12.1 "libgtest-dev and libgmock-dev")
  endif()
endif()
if(MOTE_BUILD_BENCHMARKS)
  find_package(benchmark QUIET)
  if(NOT TARGET benchmark::benchmark)
    mote_fetch_project(benchmark https://github.com/google/benchmark.git v1.7.1 libbenchmark-dev)
  endif()
endif()
