# install(), the CMake package "coil" and the pkg-config files "coil", "coil-uring" and "coil-tls".

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(COIL_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/coil")

install(TARGETS coil_uring coil EXPORT coil-targets
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS coil_minimal EXPORT coil-targets OBJECTS DESTINATION "${CMAKE_INSTALL_LIBDIR}/coil")
install(EXPORT coil-targets NAMESPACE coil:: DESTINATION "${COIL_CMAKE_DIR}")
# Everything that is installed.
add_custom_target(coil_libraries)
add_dependencies(coil_libraries coil_uring coil coil_minimal)
if(TARGET coil_tls)
    add_dependencies(coil_libraries coil_tls)
    # A file of its own, so that coil is found where OpenSSL is not.
    install(TARGETS coil_tls EXPORT coil-tls-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(EXPORT coil-tls-targets NAMESPACE coil:: DESTINATION "${COIL_CMAKE_DIR}")
endif()

# The optional components with the Debian packages that they need, for messages of find_package().
set(COIL_COMPONENT_PACKAGES "tls=libssl-dev")
get_property(adapters GLOBAL PROPERTY COIL_ADAPTERS_KNOWN)
foreach(adapter IN LISTS adapters)
    get_property(package GLOBAL PROPERTY COIL_PACKAGE_OF_${adapter})
    list(APPEND COIL_COMPONENT_PACKAGES "${adapter}=${package}")
    if(TARGET coil_${adapter})
        add_dependencies(coil_libraries coil_${adapter})
    endif()
endforeach()

# Modules are installed as sources, see CoilModules.cmake.
set(COIL_MODULES_DIR "${CMAKE_INSTALL_DATADIR}/coil/modules")
file(GLOB coil_module_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/modules/*.cppm")
install(FILES ${coil_module_sources} DESTINATION "${COIL_MODULES_DIR}")
install(FILES "${PROJECT_SOURCE_DIR}/cmake/CoilModules.cmake" DESTINATION "${COIL_CMAKE_DIR}")

# Checks of clang-tidy for users.
install(FILES "${PROJECT_SOURCE_DIR}/tools/clang-tidy/coil.clang-tidy" DESTINATION "${CMAKE_INSTALL_DATADIR}/coil")

# The debuggers' commands. gdb trusts scripts in its own auto-load directory, so the script that it loads with a program
# is installed there (src/context/listed_loop.cpp names it).
set(COIL_DEBUGGERS "${PROJECT_SOURCE_DIR}/tools/debuggers")
install(FILES "${COIL_DEBUGGERS}/coil_gdb.py" "${COIL_DEBUGGERS}/coil_lldb.py"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/coil" COMPONENT debuggers)
install(DIRECTORY "${COIL_DEBUGGERS}/coil_debug"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/coil" COMPONENT debuggers FILES_MATCHING PATTERN "*.py"
    PATTERN "__pycache__" EXCLUDE)
install(FILES "${COIL_DEBUGGERS}/auto_load.py" RENAME coil_gdb.py
    DESTINATION "${CMAKE_INSTALL_DATADIR}/gdb/auto-load" COMPONENT debuggers)

install(PROGRAMS "${PROJECT_SOURCE_DIR}/tools/coil-lines/coil-lines"
    DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT coil-lines)

# coil-top finds its package beside itself in the source tree, and here in an installation.
set(COIL_TOP_DIR "${PROJECT_SOURCE_DIR}/tools/coil-top")
install(PROGRAMS "${COIL_TOP_DIR}/coil-top" DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT coil-top)
install(DIRECTORY "${COIL_TOP_DIR}/coil_top"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/coil" COMPONENT coil-top
    FILES_MATCHING PATTERN "*.py" PATTERN "*.html" PATTERN "__pycache__" EXCLUDE)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/coil-config.cmake.in" coil-config.cmake
    INSTALL_DESTINATION "${COIL_CMAKE_DIR}"
    PATH_VARS COIL_MODULES_DIR)
# Before 1.0 a minor version may break the API; afterwards only a major one.
write_basic_package_version_file(coil-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    "${CMAKE_CURRENT_BINARY_DIR}/coil-config.cmake"
    "${CMAKE_CURRENT_BINARY_DIR}/coil-config-version.cmake"
    DESTINATION "${COIL_CMAKE_DIR}")

# The .pc files compute their prefix from their own location, so that an installed tree can be moved.
file(RELATIVE_PATH COIL_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" COIL_PC_PREFIX "${COIL_PC_PREFIX}")
set(modules coil coil-uring coil-minimal)
# Where CMake installs the object of coil::minimal.
set(COIL_MINIMAL_OBJECT "coil/objects-${CMAKE_BUILD_TYPE}/coil_minimal/minimal/minimal.cpp.o")
if(TARGET coil_tls)
    list(APPEND modules coil-tls)
endif()
foreach(module IN LISTS modules)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/${module}.pc.in" ${module}.pc @ONLY)
    install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${module}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
