# Which compilers are supported, and the warnings that our own targets are built with.

if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "coil supports Linux only, because it is built on io_uring. This build is for ${CMAKE_SYSTEM_NAME}.")
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND NOT COIL_ALLOW_GCC12)
    message(FATAL_ERROR
        "coil does not build with GCC ${CMAKE_CXX_COMPILER_VERSION}: before GCC 13, temporaries in a full-expression "
        "with co_await are silently copied byte by byte and destroyed twice. Use GCC 14 or newer, or Clang 17 or newer "
        "(-DCMAKE_CXX_COMPILER=clang++-22), or build at your own risk with -DCOIL_ALLOW_GCC12=ON.")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
    message(FATAL_ERROR
        "coil does not build with Clang ${CMAKE_CXX_COMPILER_VERSION}: it needs the coroutines of Clang 17 or newer, "
        "or of GCC 14 or newer (-DCMAKE_CXX_COMPILER=...).")
elseif(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
    message(WARNING "coil is tested with Clang and GCC only, not with ${CMAKE_CXX_COMPILER_ID}.")
endif()

# coil_own_target(<target>): sets the warnings for targets of this repository; they are not propagated to users.
function(coil_own_target target)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion
        -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wold-style-cast -Wundef
        -Wimplicit-fallthrough -Wdouble-promotion -Wformat=2
        $<$<CXX_COMPILER_ID:Clang>:-Wextra-semi -Wthread-safety -Wunreachable-code-aggressive>
        # In unity builds, names in unnamed namespaces of different files shadow each other.
        $<$<AND:$<CXX_COMPILER_ID:Clang>,$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>>:-Wshadow>
        # Google Benchmark's macros use __COUNTER__.
        $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:${CMAKE_CXX_COMPILER_VERSION},22>>:-Wno-c2y-extensions>
        # False positives of GCC: it considers a protected destructor accessible if the class has a friend (clang checks
        # that correctly), treats sources of a unity build as headers, and reports that a replaced operator new does not
        # match free().
        $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local -Wduplicated-cond -Wlogical-op -Wno-maybe-uninitialized -Wno-non-virtual-dtor
        -Wno-subobject-linkage -Wno-mismatched-new-delete>
        $<$<BOOL:${COIL_WERROR}>:-Werror>)
endfunction()

# coil_link_what_is_used(<target>): puts each function and each variable into a section of its own and lets the linker of
# every program that links to the target, also of an installed one, drop the sections that nothing refers to.
function(coil_link_what_is_used target)
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
    target_link_options(${target} INTERFACE LINKER:--gc-sections)
endfunction()

# coil_group_by_folder(<target> [<most>]): in a unity build, combines at most `most` (10) sources of one folder, so that
# names in unnamed namespaces must be unique only within a folder.
function(coil_group_by_folder target)
    set(most 10)
    if(ARGC GREATER 1)
        set(most ${ARGV1})
    endif()
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
        cmake_path(GET source PARENT_PATH folder)
        string(MAKE_C_IDENTIFIER "${folder}" folder)
        math(EXPR count_${folder} "0${count_${folder}} + 1")
        math(EXPR lot "(${count_${folder}} - 1) / ${most}")
        set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${lot}")
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# coil_optimize(<level> <source>...): compiles sources with -Os or -O2 instead of -O3 in release builds. For code that
# makes texts and reports, or runs once. Sources with options of their own are not part of a unity build, so the builds
# that use one to compile faster leave them alone.
function(coil_optimize level)
    if(CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo)$" AND NOT CMAKE_UNITY_BUILD)
        set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${level})
    endif()
endfunction()
