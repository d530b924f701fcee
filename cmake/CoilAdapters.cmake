# Adapters: libraries that let another library run on coil. Each is a target of its own, coil::NAME, in adapters/NAME:
# include/, src/, tests/*_test.cpp and examples/*.cpp. A library that is not installed leaves its adapter out.

find_package(PkgConfig QUIET)

# coil_add_adapter(NAME [MODULE module...] [HEADER header...] [PACKAGE debian-package]): adds coil::NAME, its tests and
# examples, if all of these pkg-config modules, perhaps with versions (libcurl>=7.85), are installed, and one of these
# headers, for libraries without a pkg-config file. An adapter without sources is a header-only library.
function(coil_add_adapter name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "PACKAGE" "MODULE;HEADER")
    string(TOUPPER "COIL_${name}" prefix)
    set_property(GLOBAL APPEND PROPERTY COIL_ADAPTERS_KNOWN ${name})
    set_property(GLOBAL PROPERTY COIL_PACKAGE_OF_${name} "${arg_PACKAGE}")
    if(arg_HEADER)
        find_path(${prefix}_INCLUDE_DIR NAMES ${arg_HEADER})
        mark_as_advanced(${prefix}_INCLUDE_DIR)
        if(NOT ${prefix}_INCLUDE_DIR)
            message(STATUS "no coil::${name}: there is no <${arg_HEADER}> (./dev test --interop, or ${arg_PACKAGE})")
            return()
        endif()
    endif()
    if(arg_MODULE)
        if(PKG_CONFIG_FOUND)
            # Looked up anew each time, so that a library is found once it is installed.
            foreach(module IN LISTS arg_MODULE)
                unset(__pkg_config_checked_${prefix} CACHE)
            endforeach()
            pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${arg_MODULE})
        endif()
        if(NOT ${prefix}_FOUND)
            message(STATUS "no coil::${name}: pkg-config does not find ${arg_MODULE} (./dev test --interop, or ${arg_PACKAGE})")
            return()
        endif()
        set(library PkgConfig::${prefix})
    endif()

    set(target coil_${name})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/*.cpp)
    file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.hpp include/*.h)
    if(sources)
        add_library(${target} ${sources})
        set(scope PUBLIC)
        coil_own_target(${target})
        set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    else()
        add_library(${target} INTERFACE)
        set(scope INTERFACE)
    endif()
    add_library(coil::${name} ALIAS ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${CMAKE_CURRENT_SOURCE_DIR}/include" FILES ${headers})
    target_compile_features(${target} ${scope} cxx_std_20)
    target_link_libraries(${target} ${scope} coil::coil ${library})
    # A folder that the compiler searches anyway must not be named: the order of the folders matters.
    if(arg_HEADER AND NOT ${prefix}_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
        target_include_directories(${target} SYSTEM ${scope} "$<BUILD_INTERFACE:${${prefix}_INCLUDE_DIR}>")
    endif()

    if(COIL_INSTALL)
        coil_install_adapter(${name} "${arg_MODULE}" "${arg_HEADER}" "${arg_PACKAGE}")
    endif()
    if(COIL_BUILD_ADAPTER_TESTS)
        coil_add_adapter_tests(${name} coil::${name})
    endif()
endfunction()

# The targets of each adapter are a file of their own, so that coil is found where the adapted library is not.
function(coil_install_adapter name modules headers package)
    include(GNUInstallDirs)
    set(dir "${CMAKE_INSTALL_LIBDIR}/cmake/coil")
    install(TARGETS coil_${name} EXPORT coil-${name}-targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(EXPORT coil-${name}-targets NAMESPACE coil:: DESTINATION "${dir}")
    set(COIL_ADAPTER ${name})
    set(COIL_ADAPTER_MODULES "${modules}")
    set(COIL_ADAPTER_HEADERS "${headers}")
    set(COIL_ADAPTER_PACKAGE "${package}")
    string(TOUPPER "COIL_${name}" COIL_ADAPTER_PREFIX)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/coil-adapter.cmake.in" "${PROJECT_BINARY_DIR}/coil-${name}.cmake" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/coil-${name}.cmake" DESTINATION "${dir}")

    string(REPLACE ";" ", " requires "coil = ${PROJECT_VERSION};${modules}")
    string(REGEX REPLACE ", $" "" requires "${requires}")
    # pkg-config wants spaces around the comparison of a version, CMake none.
    string(REGEX REPLACE "([^ ])([<>]?=)([^ ])" "\\1 \\2 \\3" COIL_ADAPTER_REQUIRES "${requires}")
    get_target_property(type coil_${name} TYPE)
    set(COIL_ADAPTER_LIBS "")
    if(NOT type STREQUAL "INTERFACE_LIBRARY")
        set(COIL_ADAPTER_LIBS "-L\${libdir} -lcoil_${name}")
    endif()
    file(RELATIVE_PATH COIL_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
    string(REGEX REPLACE "/$" "" COIL_PC_PREFIX "${COIL_PC_PREFIX}")
    configure_file("${PROJECT_SOURCE_DIR}/cmake/coil-adapter.pc.in" "${PROJECT_BINARY_DIR}/coil-${name}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/coil-${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

# coil_add_adapter_tests(NAME LIBRARY...): one test program, and one program per example, with these libraries. The tests
# start the servers that they need.
function(coil_add_adapter_tests name)
    file(GLOB sources CONFIGURE_DEPENDS tests/*_test.cpp)
    if(sources)
        set(target test_${name}_adapter)
        add_executable(${target} ${sources})
        target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/adapters")
        target_precompile_headers(${target} REUSE_FROM coil_test_headers)
        target_link_libraries(${target} PRIVATE ${ARGN} coil_test_support GTest::gtest_main)
        coil_own_target(${target})
        coil_compile_together(${target})
        gtest_discover_tests(${target}
            TEST_PREFIX "${name}."
            DISCOVERY_MODE PRE_TEST
            DISCOVERY_TIMEOUT 60
            PROPERTIES LABELS adapters
                ENVIRONMENT "COIL_EXAMPLES_DIR=${PROJECT_BINARY_DIR}/examples")
    endif()
    file(GLOB programs CONFIGURE_DEPENDS examples/*.cpp)
    foreach(program IN LISTS programs)
        get_filename_component(example "${program}" NAME_WE)
        add_executable(example_${example} "${program}")
        set_target_properties(example_${example} PROPERTIES OUTPUT_NAME ${example}
            RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
        target_link_libraries(example_${example} PRIVATE ${ARGN})
        coil_own_target(example_${example})
    endforeach()
endfunction()
