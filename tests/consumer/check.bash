#!/usr/bin/env bash
# check.bash STEP BUILD-DIR COMPILER FLAGS
set -euo pipefail

step=$1 build=$2 compiler=$3 flags=$4
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$build/consumer
prefix=$work/prefix

# configure_and_build [CMAKE-ARGUMENT...]
configure_and_build() {
    rm -rf "${work:?}/$step"
    "${cmake:-cmake}" -S "$here/${project:-$step}" -B "$work/$step" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" "$@"
    "${cmake:-cmake}" --build "$work/$step"
}

skip() {
    echo "SKIP: $1"
    exit 77
}
is_clang() { "$compiler" --version | grep -q clang; }

# check_modules [CMAKE-ARGUMENT...]: programs that import an installed coil.
check_modules() {
    project=modules
    configure_and_build -DCMAKE_PREFIX_PATH="$prefix" "$@"
    "$work/$step/consumer"
    "$work/$step/parts"
}

# Runs the tests of the examples, built with `import coil`, except those that are not built (modules/CMakeLists.txt).
check_importing_examples() {
    local script status
    for script in "$here"/../examples/*.sh; do
        [[ $script == */tutorial.sh || $script == */cookbook.sh || $script == */tls_*.sh ]] && continue
        status=0
        COIL_EXAMPLES_DIR=$work/$step/examples bash "$script" || status=$?
        ((status == 0 || status == 77)) || {
            echo "$script: exit status $status, with examples that import coil"
            exit 1
        }
    done
}

# Finds a CMake that supports modules: this machine's, or the one that ./dev has downloaded.
find_new_cmake() {
    local version
    for cmake in cmake ${COIL_NEW_CMAKE:-}; do
        version=$("$cmake" --version | sed -n '1s/[^0-9]*//p')
        [[ $(printf '%s\n' 3.28 "$version" | sort -V | head -n 1) == 3.28 ]] && return
    done
    skip "CMake is $version; modules need 3.28 or newer"
}

case $step in
    install)
        # The tree is moved after its installation: neither CMake's files nor pkg-config's may contain its old location.
        rm -rf "$work/first" "$prefix"
        cmake --install "$build" --prefix "$work/first"
        mv "$work/first" "$prefix"
        ;;
    cmake)
        # The library was built as C++20 (or 23); the program that uses it as C++23.
        configure_and_build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_STANDARD=23
        "$work/$step/consumer"
        ;;
    uring_only | tls)
        configure_and_build -DCMAKE_PREFIX_PATH="$prefix"
        "$work/$step/consumer"
        ;;
    minimal)
        # Programs without coil::minimal have the fallback, and those with it have neither that nor the reports.
        PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name coil.pc)")
        export PKG_CONFIG_PATH
        configure_and_build -DCMAKE_PREFIX_PATH="$prefix"
        # shellcheck disable=SC2046,SC2086
        "$compiler" $flags -std=c++20 "$here/programs/minimal.cpp" -o "$work/$step/by_pkg_config" \
            $(pkg-config --cflags --libs coil-minimal)
        for program in task minimal by_pkg_config; do
            "$work/$step/$program"
        done
        COIL_BACKEND=epoll "$work/$step/task"
        [[ $flags != *-fsanitize* ]] || exit 0 # which keeps unused sections
        for part in epoll_backend::try_receive admin_server::serve stall_watchdog::run json_writer text_writer; do
            nm -C "$work/$step/task" | grep "$part" >/dev/null || {
                echo "a program has no $part by default"
                exit 1
            }
            for program in minimal by_pkg_config; do
                if nm -C "$work/$step/$program" | grep "$part"; then
                    echo "$program links coil::minimal and has this"
                    exit 1
                fi
            done
        done
        ;;
    adapters)
        # Uses the adapters that were built, with CMake and with pkg-config, and checks the message for one that was not.
        # The installation is a copy: parts of it are moved away while other steps use the original.
        rm -rf "$work/$step-prefix"
        cp -a "$prefix" "$work/$step-prefix"
        prefix=$work/$step-prefix
        PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name coil.pc)")
        export PKG_CONFIG_PATH
        for program in "$here"/programs/adapters/*.cpp; do
            adapter=$(basename "$program" .cpp)
            targets=$(find "$prefix" -name "coil-$adapter-targets.cmake")
            if [[ $targets ]]; then
                configure_and_build -DCMAKE_PREFIX_PATH="$prefix" -DADAPTER="$adapter"
                "$work/$step/consumer"
                # shellcheck disable=SC2046,SC2086
                "$compiler" $flags -std=c++20 "$program" -o "$work/$step/by_pkg_config" \
                    $(pkg-config --cflags --libs "coil-$adapter")
                "$work/$step/by_pkg_config"
                # From here on as if coil had been built without the adapter.
                mv "$targets" "$targets.away"
                expected="is not part of this installation"
            else
                expected=.
            fi
            output=$(configure_and_build -DCMAKE_PREFIX_PATH="$prefix" -DADAPTER="$adapter" 2>&1) && {
                echo "coil::$adapter was found although it is not installed"
                exit 1
            }
            [[ -z $targets ]] || mv "$targets.away" "$targets"
            output=$(tr -s '[:space:]' ' ' <<<"$output")
            [[ $output =~ $expected && $output == *"install lib"* ]] || {
                echo "the message does not say what to install: $output"
                exit 1
            }
        done
        output=$(configure_and_build -DCMAKE_PREFIX_PATH="$prefix" -DADAPTER=nonsense 2>&1) || true
        [[ $output == *"coil has no component nonsense"* ]]
        ;;
    pkgconfig)
        PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name coil.pc)")
        export PKG_CONFIG_PATH
        mkdir -p "$work/$step"
        for pair in coil:task coil-uring:ring; do
            module=${pair%:*} program=${pair#*:}
            pkg-config --validate "$module"
            # shellcheck disable=SC2046,SC2086
            "$compiler" $flags -std=c++20 "$here/programs/$program.cpp" -o "$work/$step/$program" \
                $(pkg-config --cflags --libs "$module")
            "$work/$step/$program"
        done
        ;;
    debugger)
        # gdb loads the commands with a user's program and finds the tasks of its core file. The path of the script in the
        # program begins with the prefix that coil was configured with; -d names the directory to look it up in.
        command -v gdb >/dev/null || skip "gdb is not installed"
        command -v objcopy >/dev/null || skip "objcopy is not installed: binutils"
        [[ $flags != *-fsanitize* ]] || skip "the core file of a program with a sanitizer is too large"
        project=cmake configure_and_build -DCMAKE_PREFIX_PATH="$prefix" -DPROGRAM=waits
        objcopy --dump-section .debug_gdb_scripts="$work/$step/section" "$work/$step/consumer" "$work/$step/copy"
        script=$(tr -d '\0\1' <"$work/$step/section")
        suffix=/share/gdb/auto-load/coil_gdb.py
        [[ $script == *"$suffix" && -f $prefix$suffix ]] || {
            echo "unexpected path of the script in .debug_gdb_scripts: $script"
            exit 1
        }
        moved=$work/$step/root${script%"$suffix"}
        mkdir -p "$(dirname "$moved")"
        ln -s "$prefix" "$moved"
        cd "$work/$step"
        output=$(gdb -nx -batch -d "$work/$step/root" -iex "set auto-load safe-path $prefix" \
            -iex "set debuginfod enabled off" -ex run -ex "generate-core-file $work/$step/core" -ex "coil tasks" \
            -ex kill ./consumer 2>&1)
        output+=$(gdb -nx -batch -d "$work/$step/root" -iex "set auto-load safe-path $prefix" \
            -iex "set debuginfod enabled off" -ex "coil tasks --summary" -ex "coil bt session" ./consumer core 2>&1)
        for expected in "'session': event" "2 event" "session(coil::event&) at waits.cpp:6"; do
            [[ $output == *"$expected"* ]] || {
                echo "the output of gdb lacks \"$expected\": $output"
                exit 1
            }
        done
        ;;
    add_subdirectory)
        configure_and_build -DCOIL_SOURCE_DIR="$(dirname "$(dirname "$here")")" -DCMAKE_UNITY_BUILD=ON # only to save time
        "$work/$step/consumer"
        if ninja -C "$work/$step" -t targets all | grep -E '(example|test|bench)_'; then
            echo "a project that adds coil must get the library only"
            exit 1
        fi
        ;;
    modules_are_what_headers_say)
        is_clang || skip "this needs clang, which lists the declarations of a header"
        python3 "$here/../../modules/generate.py" "$compiler" --check
        ;;
    modules_by_commands)
        is_clang || skip "building modules without CMake's support needs clang"
        check_modules -DCOIL_PRECOMPILE_MODULES=ON -DCOIL_EXAMPLES="$here/../../examples"
        check_importing_examples
        ;;
    modules_by_cmake)
        is_clang || skip "this needs GCC 15"
        find_new_cmake
        check_modules -DCMAKE_CXX_SCAN_FOR_MODULES=ON -DCMAKE_CXX_STANDARD=23 -DCMAKE_CXX_EXTENSIONS=OFF
        ;;
    *)
        echo "unknown step '$step'"
        exit 1
        ;;
esac
