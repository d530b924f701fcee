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
    cmake -S "$here/$step" -B "$work/$step" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_CXX_FLAGS="$flags" "$@"
    cmake --build "$work/$step"
}

case $step in
    install)
        # The tree is moved after it was installed: neither CMake's files nor pkg-config's may know where it was.
        rm -rf "$work/first" "$prefix"
        cmake --install "$build" --prefix "$work/first"
        mv "$work/first" "$prefix"
        ;;
    cmake)
        # The library was built as C++20 (or 23); its user chooses the other language level.
        configure_and_build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_STANDARD=23
        "$work/$step/consumer"
        ;;
    uring_only)
        configure_and_build -DCMAKE_PREFIX_PATH="$prefix"
        "$work/$step/consumer"
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
    add_subdirectory)
        configure_and_build -DCOIL_SOURCE_DIR="$(dirname "$(dirname "$here")")"
        "$work/$step/consumer"
        if ninja -C "$work/$step" -t targets all | grep -E '(example|test|bench)_'; then
            echo "a project that adds coil must get the library only"
            exit 1
        fi
        ;;
    *)
        echo "no step is called '$step'"
        exit 1
        ;;
esac
