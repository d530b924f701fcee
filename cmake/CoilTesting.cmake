# Finds and registers tests. See tests/CMakeLists.txt for the conventions.

# CTest's module is included for the time limit per test; its dashboard targets are suppressed.
set_property(GLOBAL PROPERTY CTEST_TARGETS_ADDED 1)
set(DART_TESTING_TIMEOUT "${COIL_TEST_TIMEOUT}")
include(CTest)
include(GoogleTest)

find_package(GTest CONFIG)
if(NOT GTest_FOUND)
    message(FATAL_ERROR
        "GoogleTest is not installed: run ./dev setup, or install libgtest-dev, or configure with -DCOIL_BUILD_TESTS=OFF.")
endif()

# Parsing gtest.h and coil.hpp takes longer than most test files, so both are precompiled once, with the flags of the
# tests (GCC requires that). The room "uring" has its own header without coil.hpp, which proves that the ring does not
# depend on the rest.
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

# Code shared by the tests, compiled once. With COIL_FAULT_SEED set it also makes a program's contexts use the
# fault-injecting backend (tests/support/fault_environment.cpp).
file(GLOB coil_test_support_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cpp")
add_library(coil_test_support OBJECT ${coil_test_support_sources})
target_precompile_headers(coil_test_support REUSE_FROM coil_test_headers)
target_include_directories(coil_test_support PUBLIC "${PROJECT_SOURCE_DIR}/tests")
target_link_libraries(coil_test_support PUBLIC coil::coil GTest::gtest_main)
coil_own_target(coil_test_support)

# coil_compile_together(<target>): compiles small sources in pairs and large ones alone. Two sources share much of their
# compile time; three may need more than 700 MB. Names in unnamed namespaces must be unique within a room.
function(coil_compile_together target)
    get_target_property(sources ${target} SOURCES)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 2)
    foreach(source IN LISTS sources)
        file(SIZE "${source}" size)
        if(size GREATER 12000)
            set_source_files_properties("${source}" PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
        endif()
    endforeach()
endfunction()

# coil_discover_room_tests(<target> <labels> <filter> [<property> <value>]...): the tests of a room, the first of the
# labels, that match a filter of GoogleTest.
function(coil_discover_room_tests target labels filter)
    list(GET labels 0 room)
    gtest_discover_tests(${target}
        TEST_PREFIX "${room}."
        TEST_FILTER "${filter}"
        DISCOVERY_MODE PRE_TEST
        DISCOVERY_TIMEOUT 60
        WORKING_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
        PROPERTIES LABELS ${room} ${ARGN})
    # gtest_discover_tests sets no properties that are lists. Reports of the watchdog, on a loaded machine, would be output
    # that the tests do not expect.
    get_directory_property(includes TEST_INCLUDE_FILES)
    list(LENGTH includes number)
    set(lists "${CMAKE_CURRENT_BINARY_DIR}/${target}_lists_${number}.cmake")
    set(environment "COIL_EXAMPLES_DIR=${PROJECT_BINARY_DIR}/examples;COIL_WATCHDOG=off")
    file(WRITE "${lists}" "if(${target}_TESTS)
    set_tests_properties(\${${target}_TESTS} PROPERTIES LABELS \"${labels}\" ENVIRONMENT \"${environment}\")
endif()
")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${lists}")
endfunction()

# coil_add_room_tests(<room>): builds all tests/<room>/*_test.cpp into one program; each TEST becomes a CTest test with
# the label <room>. The program of the room "uring" links coil::uring alone, which proves that it does not depend on the
# rest.
function(coil_add_room_tests room)
    file(GLOB sources CONFIGURE_DEPENDS "${room}/*_test.cpp")
    if(NOT sources)
        return()
    endif()
    if(room STREQUAL "tls" AND NOT TARGET coil::tls)
        message(STATUS "no tests of tls: there is no coil::tls")
        add_test(NAME ${room}.openssl
            COMMAND "${CMAKE_COMMAND}" -E echo "SKIP: there is no coil::tls: OpenSSL 3 is not installed (./dev setup, or libssl-dev), or COIL_BUILD_TLS is OFF")
        set_tests_properties(${room}.openssl PROPERTIES LABELS ${room} SKIP_REGULAR_EXPRESSION "SKIP: ")
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
    if(room STREQUAL "tls")
        # The tests make certificates, and a peer that breaks the protocol, with OpenSSL itself.
        target_link_libraries(${target} PRIVATE coil::tls OpenSSL::SSL)
    endif()
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    coil_own_target(${target})
    coil_compile_together(${target})
    # What the watchdog reports depends on when its thread runs: its tests run beside no others.
    set(others "*")
    if(room STREQUAL "observe")
        coil_discover_room_tests(${target} ${room} "*Watchdog.*" RUN_SERIAL TRUE)
        set(others "-*Watchdog.*")
    endif()
    # What reads and writes files by the backend also runs on the epoll backend in every run: scripts/dev.d/test.sh.
    if(room STREQUAL "fs")
        set(by_backend "*FsUnread.*:FsFile.*:FsReadFile.*:FsWriteFile.*:Watch.*")
        coil_discover_room_tests(${target} "fs;epoll" "${by_backend}")
        set(others "-${by_backend}")
    endif()
    coil_discover_room_tests(${target} ${room} "${others}")
endfunction()

# coil_add_model_tests(<folder>): builds all <folder>/*.cpp into one program that model-checks lock-free code with
# relacy. It does not depend on how the library is built. It is always optimized and never sanitized, because relacy
# switches stacks without notifying a sanitizer. If relacy is not installed, a single skipped test says so.
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
    # Headers only: no code of the library runs.
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include")
    target_compile_features(${target} PRIVATE cxx_std_20)
    target_link_libraries(${target} PRIVATE GTest::gtest_main)
    coil_own_target(${target})
    set_target_properties(${target} PROPERTIES UNITY_BUILD OFF) # the models use the same names
    # relacy recognises destroyed objects by a destructor's last stores, so these must not be optimized away. It
    # replaces operator delete but not the sized variant. GCC warns wrongly that relacy's malloc, inlined into the
    # standard library, could be called with too large a size.
    target_compile_options(${target} PRIVATE -O2 $<$<CONFIG:Debug>:-g1> -fno-sized-deallocation
        $<$<CXX_COMPILER_ID:GNU>:-fno-lifetime-dse -Wno-alloc-size-larger-than>)
    gtest_discover_tests(${target}
        TEST_PREFIX "${folder}."
        DISCOVERY_MODE PRE_TEST
        DISCOVERY_TIMEOUT 60
        PROPERTIES LABELS ${folder})
endfunction()

# coil_add_script_tests(<room>): each tests/<room>/*.sh is one test. Exit status 77 means skipped; the script prints the
# reason on a line that begins with "SKIP:".
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

# coil_add_compile_fail_tests(<folder>): each <folder>/*.cpp is a table of cases, or a single case. A case must fail to
# compile with its message, and must compile with -DCOIL_EXPECT_OK; it is a CTest test. check.bash describes the format.
function(coil_add_compile_fail_tests folder)
    set(headers "${CMAKE_CURRENT_BINARY_DIR}/${folder}_headers")
    set(compiler "${CMAKE_CXX_COMPILER}" "-std=c++${CMAKE_CXX_STANDARD}" "-I${PROJECT_SOURCE_DIR}/include")
    set(check bash "${PROJECT_SOURCE_DIR}/tests/compile_fail/check.bash")
    add_test(NAME compile_fail.headers COMMAND ${check} --precompile "${headers}" ${compiler})
    set_tests_properties(compile_fail.headers PROPERTIES LABELS compile_fail FIXTURES_SETUP compile_fail_headers)
    file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${sources}")
    foreach(source IN LISTS sources)
        file(STRINGS "${source}" cases REGEX "^#if COIL_CASE == [0-9]+ // [a-z0-9_]+$")
        if(NOT cases)
            get_filename_component(name "${source}" NAME_WE)
            coil_add_compile_fail_test(${name} "${source}")
        endif()
        foreach(case IN LISTS cases)
            string(REGEX MATCH "== ([0-9]+) // (.*)$" matched "${case}")
            coil_add_compile_fail_test(${CMAKE_MATCH_2} "${source}:${CMAKE_MATCH_1}")
        endforeach()
    endforeach()
endfunction()

# Uses the variables of coil_add_compile_fail_tests().
macro(coil_add_compile_fail_test name source)
    add_test(NAME compile_fail.${name} COMMAND ${check} "${source}" "${headers}" ${compiler})
    set_tests_properties(compile_fail.${name} PROPERTIES
        LABELS compile_fail
        SKIP_RETURN_CODE 77
        FIXTURES_REQUIRED compile_fail_headers)
endmacro()

# coil_add_fault_tests(<room> <seeds>): runs the room's program on the fault-injecting backend with the seeds 1 to
# <seeds>; each run is a CTest test.
function(coil_add_fault_tests room seeds)
    foreach(seed RANGE 1 ${seeds})
        add_test(NAME faults.${room}.seed_${seed}
            COMMAND bash "${PROJECT_SOURCE_DIR}/tests/faults/run.bash" "$<TARGET_FILE:test_${room}>" ${seed} ${seed})
        set_tests_properties(faults.${room}.seed_${seed} PROPERTIES
            LABELS faults
            TIMEOUT 300 # run.bash gives up earlier, and reports which test it was
            # many seeds find more than long runs of one
            ENVIRONMENT_MODIFICATION "COIL_TEST_LONG=unset:")
    endforeach()
endfunction()

# coil_add_canaries(<folder> <seeds>): every *.cmake there plants a bug. It sets `source`, a file of the library, the
# text to replace (`old`) and its replacement (`new`). The random programs in the simulator, linked with the changed
# file in front of the library, must fail within that many seeds. Built by the target `canaries` only.
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
            message(FATAL_ERROR "${bug}: ${source} does not contain the text to replace")
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
        if(CMAKE_UNITY_BUILD)
            # The library's object has these functions together with those of other sources: the first definition counts.
            target_link_options(${target} PRIVATE LINKER:--allow-multiple-definition)
        endif()
        add_dependencies(canaries ${target})
        add_test(NAME canaries.${name}
            COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/check.bash" "$<TARGET_FILE:${target}>" ${seeds})
        set_tests_properties(canaries.${name} PROPERTIES LABELS canaries SKIP_RETURN_CODE 77)
    endforeach()
endfunction()

# coil_add_fuzz_targets(<folder> <source>...): builds <folder>/libfuzzer.cpp into one program per target of the fuzzer, a
# folder of the corpus: the parsers' sources are compiled again with libFuzzer's counters and linked in front of the
# library. Built by the target `fuzzers` only, by clang, with the sanitizers of the build tree.
function(coil_add_fuzz_targets folder)
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR COIL_SANITIZE MATCHES "thread")
        return()
    endif()
    list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/src/" OUTPUT_VARIABLE sources)
    add_library(coil_fuzzed OBJECT EXCLUDE_FROM_ALL ${sources})
    target_include_directories(coil_fuzzed PRIVATE "${PROJECT_SOURCE_DIR}/src")
    add_custom_target(fuzzers)
    file(GLOB corpora CONFIGURE_DEPENDS LIST_DIRECTORIES true "${folder}/corpus/*")
    foreach(corpus IN LISTS corpora)
        get_filename_component(name "${corpus}" NAME)
        add_executable(fuzz_${name} EXCLUDE_FROM_ALL "${folder}/libfuzzer.cpp" $<TARGET_OBJECTS:coil_fuzzed>)
        target_include_directories(fuzz_${name} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
        target_compile_definitions(fuzz_${name} PRIVATE COIL_FUZZ_TARGET=${name})
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        if(CMAKE_UNITY_BUILD)
            # The library's object has these functions together with those of other sources: the first definition counts.
            target_link_options(fuzz_${name} PRIVATE LINKER:--allow-multiple-definition)
        endif()
        add_dependencies(fuzzers fuzz_${name})
        list(APPEND programs fuzz_${name})
    endforeach()
    foreach(target IN LISTS programs ITEMS coil_fuzzed)
        target_link_libraries(${target} PRIVATE coil::coil)
        target_compile_options(${target} PRIVATE -O1 -fsanitize=fuzzer-no-link)
        coil_own_target(${target})
        set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
    endforeach()
endfunction()
