# How tests are found and registered. See tests/CMakeLists.txt for the conventions.

# Dashboard targets are of no use here; the time limit per test is why CTest's module is included.
set_property(GLOBAL PROPERTY CTEST_TARGETS_ADDED 1)
set(DART_TESTING_TIMEOUT "${COIL_TEST_TIMEOUT}")
include(CTest)
include(GoogleTest)

find_package(GTest CONFIG)
if(NOT GTest_FOUND)
    message(FATAL_ERROR
        "GoogleTest is not installed: run ./dev setup, or install libgtest-dev, or configure with -DCOIL_BUILD_TESTS=OFF.")
endif()

# Parsing gtest.h and coil.hpp costs more than most test files; it is done once, with the flags of the tests, as GCC refuses
# it otherwise. The room "uring" has headers of its own, without coil.hpp: it proves that the ring stands alone.
function(coil_add_test_headers target)
    add_library(${target} OBJECT "${PROJECT_SOURCE_DIR}/cmake/test_pch.cpp")
    target_link_libraries(${target} PRIVATE GTest::gtest_main ${ARGN})
    target_compile_features(${target} PRIVATE cxx_std_20)
    coil_own_target(${target})
    target_precompile_headers(${target} PRIVATE
        <gtest/gtest.h> <atomic> <chrono> <functional> <string> <thread> <vector>)
endfunction()
coil_add_test_headers(coil_test_headers coil::coil)
target_precompile_headers(coil_test_headers PRIVATE <coil/coil.hpp>)
coil_add_test_headers(coil_uring_test_headers)

# What tests share and is worth compiling once. It also lets a program's contexts run on a faulty kernel when
# COIL_FAULT_SEED is set (tests/support/fault_environment.cpp).
file(GLOB coil_test_support_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cpp")
add_library(coil_test_support OBJECT ${coil_test_support_sources})
target_precompile_headers(coil_test_support REUSE_FROM coil_test_headers)
target_include_directories(coil_test_support PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(coil_test_support PUBLIC coil::coil GTest::gtest_main)
coil_own_target(coil_test_support)

# coil_compile_together(<target>): the sources in two lots. Most of what a test costs to compile is what the others of its room
# need as well. Names in unnamed namespaces have to differ within a room.
function(coil_compile_together target)
    get_target_property(sources ${target} SOURCES)
    list(LENGTH sources count)
    math(EXPR half "(${count} + 1) / 2")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${half})
endfunction()

# coil_add_room_tests(<room>): all of tests/<room>/*_test.cpp in one program; each TEST is a test of CTest with the
# label <room>. The program of the room "uring" links the ring alone, which proves that the ring stands alone.
function(coil_add_room_tests room)
    file(GLOB sources CONFIGURE_DEPENDS "${room}/*_test.cpp")
    if(NOT sources)
        return()
    endif()
    set(target test_${room})
    add_executable(${target} ${sources})
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    if(room STREQUAL "uring")
        target_precompile_headers(${target} REUSE_FROM coil_uring_test_headers)
        target_link_libraries(${target} PRIVATE coil::uring)
    else()
        target_precompile_headers(${target} REUSE_FROM coil_test_headers)
        target_link_libraries(${target} PRIVATE coil_test_support coil::coil)
    endif()
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    coil_own_target(${target})
    coil_compile_together(${target})
    gtest_discover_tests(${target}
        TEST_PREFIX "${room}."
        DISCOVERY_MODE PRE_TEST
        DISCOVERY_TIMEOUT 60
        WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
        PROPERTIES
            LABELS ${room}
            ENVIRONMENT "COIL_EXAMPLES_DIR=${PROJECT_BINARY_DIR}/examples")
endfunction()

# coil_add_model_tests(<folder>): all of <folder>/*.cpp in one program that plays models of what threads do to each other
# with relacy. Nothing of it depends on how the library is built, so it is always optimized and never sanitized: relacy
# switches stacks behind a sanitizer's back. Without relacy one test is there that says so.
function(coil_add_model_tests folder)
    find_path(COIL_RELACY_INCLUDE_DIR relacy/relacy.hpp)
    mark_as_advanced(COIL_RELACY_INCLUDE_DIR)
    if(COIL_SANITIZE)
        message(STATUS "no model tests: relacy does not work under sanitizers")
        return()
    elseif(NOT COIL_RELACY_INCLUDE_DIR)
        message(STATUS "no model tests: relacy is not installed (./dev setup, or relacy-dev)")
        add_test(NAME ${folder}.relacy
            COMMAND "${CMAKE_COMMAND}" -E echo "SKIP: relacy is not installed: ./dev setup, or relacy-dev")
        set_tests_properties(${folder}.relacy PROPERTIES LABELS ${folder} SKIP_REGULAR_EXPRESSION "SKIP: ")
        return()
    endif()
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    set(target test_${folder})
    add_executable(${target} ${sources})
    target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_include_directories(${target} SYSTEM PRIVATE "${COIL_RELACY_INCLUDE_DIR}")
    # Headers alone: nothing of the library is run.
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_compile_features(${target} PRIVATE cxx_std_20)
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    coil_own_target(${target})
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF) # they have the same names for the same things
    # A destructor's last stores are how relacy knows what is gone. It replaces operator delete, but not the sized one, and
    # its malloc, inlined into the standard library, looks to GCC as if it could be asked for too much.
    target_compile_options(${target} PRIVATE -O2 $<$<CONFIG:Debug>:-g1> -fno-sized-deallocation
        $<$<CXX_COMPILER_ID:GNU>:-fno-lifetime-dse -Wno-alloc-size-larger-than>)
    gtest_discover_tests(${target}
        TEST_PREFIX "${folder}."
        DISCOVERY_MODE PRE_TEST
        DISCOVERY_TIMEOUT 60
        PROPERTIES LABELS ${folder})
endfunction()

# coil_add_script_tests(<room>): each tests/<room>/*.sh is one test. Exit status 77 means skipped, and the script says
# why on a line that begins with "SKIP:".
function(coil_add_script_tests room)
    file(GLOB scripts CONFIGURE_DEPENDS "${room}/*.sh")
    foreach(script IN LISTS scripts)
        get_filename_component(name "${script}" NAME_WE)
        add_test(NAME ${room}.${name} COMMAND bash "${script}")
        set_tests_properties(${room}.${name} PROPERTIES
            LABELS ${room}
            SKIP_RETURN_CODE 77
            ENVIRONMENT "COIL_EXAMPLES_DIR=${PROJECT_BINARY_DIR}/examples")
    endforeach()
endfunction()

# coil_add_compile_fail_tests(<folder>): every *.cpp there must be refused with the sentence of its first line, and be
# accepted with -DCOIL_EXPECT_OK.
function(coil_add_compile_fail_tests folder)
    set(headers "${CMAKE_CURRENT_BINARY_DIR}/${folder}_headers")
    set(compiler "${CMAKE_CXX_COMPILER}" "-std=c++${CMAKE_CXX_STANDARD}" "-I${PROJECT_SOURCE_DIR}/include")
    set(check bash "${PROJECT_SOURCE_DIR}/tests/compile_fail/check.bash")
    add_test(NAME compile_fail.headers COMMAND ${check} --precompile "${headers}" ${compiler})
    set_tests_properties(compile_fail.headers PROPERTIES LABELS compile_fail FIXTURES_SETUP compile_fail_headers)
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    foreach(source IN LISTS sources)
        get_filename_component(name "${source}" NAME_WE)
        add_test(NAME compile_fail.${name} COMMAND ${check} "${source}" "${headers}" ${compiler})
        set_tests_properties(compile_fail.${name} PROPERTIES
            LABELS compile_fail
            SKIP_RETURN_CODE 77
            FIXTURES_REQUIRED compile_fail_headers)
    endforeach()
endfunction()

# coil_add_fault_tests(<room> <seeds>): the room's program on a faulty kernel with the seeds 1 to <seeds>, each run a test of
# CTest.
function(coil_add_fault_tests room seeds)
    foreach(seed RANGE 1 ${seeds})
        add_test(NAME faults.${room}.seed_${seed}
            COMMAND bash "${PROJECT_SOURCE_DIR}/tests/faults/run.bash" "$<TARGET_FILE:test_${room}>" ${seed} ${seed})
        set_tests_properties(faults.${room}.seed_${seed} PROPERTIES
            LABELS faults
            TIMEOUT 150 # run.bash gives up before, and says which test it was
            ENVIRONMENT_MODIFICATION "COIL_TEST_LONG=unset:") # many seeds are worth more than long runs of one
    endforeach()
endfunction()

# coil_add_canaries(<folder> <seeds>): every *.cmake there plants a bug: it sets `source`, a file of the library, and what stands
# there (`old`) and shall (`new`). A program of the random programs in a simulated world, linked with the changed file before the
# library, must fail within so many seeds. They are built with the target `canaries` alone.
function(coil_add_canaries folder seeds)
    add_library(coil_canary_programs OBJECT EXCLUDE_FROM_ALL "${CMAKE_CURRENT_SOURCE_DIR}/property/simulated_programs_test.cpp")
    target_precompile_headers(coil_canary_programs REUSE_FROM coil_test_headers)
    target_include_directories(coil_canary_programs PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
    target_link_libraries(coil_canary_programs PRIVATE coil::coil GTest::gtest_main)
    coil_own_target(coil_canary_programs)
    add_custom_target(canaries)
    file(GLOB bugs CONFIGURE_DEPENDS "${folder}/*.cmake")
    foreach(bug IN LISTS bugs)
        include("${bug}")
        get_filename_component(name "${bug}" NAME_WE)
        get_filename_component(home "${source}" DIRECTORY)
        file(READ "${PROJECT_SOURCE_DIR}/${source}" text)
        string(FIND "${text}" "${old}" found)
        if(found EQUAL -1)
            message(FATAL_ERROR "${bug}: ${source} does not have what is to be replaced")
        endif()
        string(REPLACE "${old}" "${new}" text "${text}")
        set(copy "${CMAKE_CURRENT_BINARY_DIR}/canaries/${name}.cpp")
        file(CONFIGURE OUTPUT "${copy}" CONTENT "${text}" @ONLY)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${bug}" "${PROJECT_SOURCE_DIR}/${source}")
        set(target canary_${name})
        add_executable(${target} EXCLUDE_FROM_ALL "${copy}" $<TARGET_OBJECTS:coil_canary_programs>)
        target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/${home}")
        target_link_libraries(${target} PRIVATE coil::coil GTest::gtest_main)
        set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
        add_dependencies(canaries ${target})
        add_test(NAME canaries.${name}
            COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/check.bash" "$<TARGET_FILE:${target}>" ${seeds})
        set_tests_properties(canaries.${name} PROPERTIES LABELS canaries SKIP_RETURN_CODE 77)
    endforeach()
endfunction()
