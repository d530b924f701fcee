# Which compilers are fit for coroutines, and the warnings our own targets are built with.

if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    message(FATAL_ERROR "coil runs on Linux only: it is made of io_uring. This build is for ${CMAKE_SYSTEM_NAME}.")
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13 AND NOT COIL_ALLOW_GCC12)
    message(FATAL_ERROR
        "coil does not build with GCC ${CMAKE_CXX_COMPILER_VERSION}: before GCC 13, temporaries in a full-expression "
        "with co_await are silently copied byte by byte and destroyed twice. Use GCC 14 or newer, or Clang 17 or newer "
        "(-DCMAKE_CXX_COMPILER=clang++-22), or take the risk with -DCOIL_ALLOW_GCC12=ON.")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 17)
    message(FATAL_ERROR
        "coil does not build with Clang ${CMAKE_CXX_COMPILER_VERSION}: it needs the coroutines of Clang 17 or newer, "
        "or of GCC 14 or newer (-DCMAKE_CXX_COMPILER=...).")
elseif(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
    message(WARNING "coil is built and tested with Clang and GCC; ${CMAKE_CXX_COMPILER_ID} is unknown to it.")
endif()

# coil_own_target(<target>): warnings for what this repository builds; never passed on to users.
function(coil_own_target target)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion
        -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wold-style-cast -Wundef
        -Wimplicit-fallthrough -Wdouble-promotion -Wformat=2
        $<$<CXX_COMPILER_ID:Clang>:-Wextra-semi -Wthread-safety -Wunreachable-code-aggressive>
        # Where files are compiled together, it would warn of each other's unnamed namespaces.
        $<$<AND:$<CXX_COMPILER_ID:Clang>,$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>>:-Wshadow>
        # Google Benchmark's macros count with __COUNTER__.
        $<$<AND:$<CXX_COMPILER_ID:Clang>,$<VERSION_GREATER_EQUAL:${CMAKE_CXX_COMPILER_VERSION},22>>:-Wno-c2y-extensions>
        # GCC takes a protected destructor for accessible where the class has a friend; clang checks it. Files that are
        # compiled together it takes for headers, and a replaced operator new for one that does not go with free().
        $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local -Wduplicated-cond -Wlogical-op -Wno-maybe-uninitialized -Wno-non-virtual-dtor
        -Wno-subobject-linkage -Wno-mismatched-new-delete>
        $<$<BOOL:${COIL_WERROR}>:-Werror>)
endfunction()

# coil_group_by_folder(<target>): in a unity build, what is compiled together is of one folder, at most ten files at once; so
# only the files of a folder must not have the same names for different things.
function(coil_group_by_folder target)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
        cmake_path(GET source PARENT_PATH folder)
        string(MAKE_C_IDENTIFIER "${folder}" folder)
        math(EXPR count_${folder} "0${count_${folder}} + 1")
        math(EXPR lot "(${count_${folder}} - 1) / 10")
        set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}_${lot}")
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
