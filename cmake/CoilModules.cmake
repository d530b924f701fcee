# coil_add_modules(): the target coil::modules, for programs that `import coil;`.
#
# A compiled module is usable only with the same compiler, language level and flags. Modules are therefore installed as
# sources and compiled in the project that imports them. With CMake 3.28 or newer, Ninja and module scanning
# (cmake_minimum_required(VERSION 3.28) or CMAKE_CXX_SCAN_FOR_MODULES) they are a CMake file set. Otherwise, with Clang,
# custom commands compile them and no scanning is needed; COIL_PRECOMPILE_MODULES=ON selects that everywhere.

function(coil_add_modules)
    if(TARGET coil::modules)
        return()
    endif()
    get_property(folder GLOBAL PROPERTY COIL_MODULES_DIR)
    file(GLOB modules "${folder}/*.cppm")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
        message(FATAL_ERROR
            "coil's modules need Clang 17 or newer, or GCC 15 or newer (-DCMAKE_CXX_COMPILER=...); this is GCC "
            "${CMAKE_CXX_COMPILER_VERSION}. #include <coil/coil.hpp> works with it.")
    endif()
    if(CMAKE_VERSION VERSION_GREATER_EQUAL 3.28 AND CMAKE_GENERATOR MATCHES "Ninja" AND NOT COIL_PRECOMPILE_MODULES
       AND (CMAKE_MINIMUM_REQUIRED_VERSION VERSION_GREATER_EQUAL 3.28 OR CMAKE_CXX_SCAN_FOR_MODULES))
        add_library(coil_modules STATIC)
        target_sources(coil_modules PUBLIC FILE_SET CXX_MODULES BASE_DIRS "${folder}" FILES ${modules})
    elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        coil_precompile_modules("${modules}")
    else()
        message(FATAL_ERROR
            "coil's modules need cmake_minimum_required(VERSION 3.28) with Ninja, or Clang; this is CMake ${CMAKE_VERSION} with "
            "${CMAKE_GENERATOR} and ${CMAKE_CXX_COMPILER_ID}. #include <coil/coil.hpp> works with it.")
    endif()
    target_compile_features(coil_modules PUBLIC cxx_std_20)
    target_link_libraries(coil_modules PUBLIC coil::coil)
    add_library(coil::modules ALIAS coil_modules)
endfunction()

# Defines the library coil_modules from these modules, compiled with the flags of the project's own sources.
function(coil_precompile_modules modules)
    set(binary "${CMAKE_CURRENT_BINARY_DIR}/coil_modules")
    file(MAKE_DIRECTORY "${binary}")
    set(standard ${CMAKE_CXX_STANDARD})
    if(NOT standard)
        set(standard 20)
    endif()
    set(dialect gnu)
    if(DEFINED CMAKE_CXX_EXTENSIONS AND NOT CMAKE_CXX_EXTENSIONS)
        set(dialect c)
    endif()
    string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
    separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}}")
    list(APPEND flags -std=${dialect}++${standard} "-fprebuilt-module-path=${binary}")
    if(CMAKE_POSITION_INDEPENDENT_CODE)
        list(APPEND flags -fPIC)
    endif()
    set(includes $<TARGET_PROPERTY:coil::coil,INTERFACE_INCLUDE_DIRECTORIES>
        $<TARGET_PROPERTY:coil::uring,INTERFACE_INCLUDE_DIRECTORIES>)
    set(of_project $<TARGET_PROPERTY:coil_modules,COMPILE_OPTIONS>)

    set(objects "")
    foreach(source IN LISTS modules)
        get_filename_component(name "${source}" NAME_WLE)
        file(STRINGS "${source}" imports REGEX "^(export )?import ")
        list(TRANSFORM imports REPLACE "^(export )?import (.*);$" "${binary}/\\2.pcm")
        set(pcm "${binary}/${name}.pcm")
        add_custom_command(OUTPUT "${pcm}"
            COMMAND "${CMAKE_CXX_COMPILER}" ${flags} ${of_project} "-I$<JOIN:${includes},;-I>"
                -MD -MF "${pcm}.d" -MT "${pcm}" --precompile -o "${pcm}" "${source}"
            MAIN_DEPENDENCY "${source}"
            DEPENDS ${imports}
            DEPFILE "${pcm}.d"
            COMMENT "Precompiling module ${name}"
            COMMAND_EXPAND_LISTS VERBATIM)
        add_custom_command(OUTPUT "${binary}/${name}.o"
            COMMAND "${CMAKE_CXX_COMPILER}" ${flags} ${of_project} -Wno-unused-command-line-argument
                -c -o "${binary}/${name}.o" "${pcm}"
            MAIN_DEPENDENCY "${pcm}"
            DEPENDS ${imports}
            COMMENT "Compiling module ${name}"
            COMMAND_EXPAND_LISTS VERBATIM)
        list(APPEND objects "${binary}/${name}.o")
    endforeach()
    add_library(coil_modules STATIC ${objects})
    set_target_properties(coil_modules PROPERTIES LINKER_LANGUAGE CXX)
    target_compile_options(coil_modules INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fprebuilt-module-path=${binary}>")
endfunction()
