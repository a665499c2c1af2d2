# What `cmake --install` brings: the libraries, mote.h, the tool, and both ways to find them: a CMake package
# (mote::mote static, mote::shared) and mote.pc for pkg-config.
include(CMakePackageConfigHelpers)

install(TARGETS ${MOTE_LIBRARIES} EXPORT mote-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/include/mote.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET mote_tool)
  install(TARGETS mote_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mote)
install(EXPORT mote-targets NAMESPACE mote:: DESTINATION ${package_dir})
set(MOTE_STATIC_LIBS ${MOTE_PKGCONFIG_LIBS})
list(TRANSFORM MOTE_STATIC_LIBS REPLACE "^-l" "")
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/moteConfig.cmake.in moteConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(moteConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/moteConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/moteConfigVersion.cmake
        DESTINATION ${package_dir})

# Found from where the file lies, so that the installed tree can be moved.
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REPLACE ";" " " private_libs "${MOTE_PKGCONFIG_LIBS} -pthread -lm")
configure_file(${CMAKE_CURRENT_LIST_DIR}/mote.pc.in mote.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/mote.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
