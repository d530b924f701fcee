# shellcheck shell=bash disable=SC2154
# Runs liburing's own tests on io_uring, on the epoll backend and through coil::uring::ring (tests/liburing/). They come
# from Debian's source package and are unpacked in build/liburing.

# The version that tests/liburing/expected.txt describes. To try another: COIL_LIBURING=2.9-1 ./dev test --liburing, or
# COIL_LIBURING_SOURCE=DIRECTORY with unpacked sources, which are copied. Of other versions, programs that are not in the
# table have to behave as on io_uring: see accepted() in tests/liburing/run.py.
readonly liburing_of_table=2.15-1
if [[ -n ${COIL_LIBURING_SOURCE:-} ]]; then
    liburing_version=source-$(basename "$(realpath "$COIL_LIBURING_SOURCE")")
else
    liburing_version=${COIL_LIBURING:-$liburing_of_table}
fi

# fetch_liburing DIRECTORY: unpacks the source package in DIRECTORY.
fetch_liburing() {
    local dir=$1
    mkdir -p "$dir.new"
    fetch_tarball "liburing=$liburing_version" "$dir.new" || return 1
    tar -xf "$tarball" -C "$dir.new" --strip-components=1 || return 1
    rm -rf "$dir" && mv "$dir.new" "$dir"
}

# copy_liburing DIRECTORY: copies $COIL_LIBURING_SOURCE, whose build and changes it does not take part in.
copy_liburing() {
    local dir=$1
    [[ -x $COIL_LIBURING_SOURCE/configure && -d $COIL_LIBURING_SOURCE/test ]] || return 1
    rm -rf "$dir.new" && mkdir -p "$dir.new" || return 1
    tar -C "$COIL_LIBURING_SOURCE" --exclude=./.git -cf - . | tar -C "$dir.new" -xf - || return 1
    rm -f "$dir.new/built"
    make -C "$dir.new" clean || true
    rm -rf "$dir" && mv "$dir.new" "$dir"
}

# build_liburing DIRECTORY: builds its tests with system calls through libc, where the shim intercepts them.
build_liburing() {
    local dir=$1 file cc=${CXX/clang++/clang}
    cc=${cc/g++/gcc}
    cd "$dir" || return 1
    for file in syscall lib; do
        cp "src/arch/generic/$file.h" "src/arch/x86/$file.h" || return 1
    done
    ./configure --cc="$cc" --cxx="$CXX" || return 1
    make -C src -j"$(jobs_at_once)" liburing.a ENABLE_SHARED=0 || return 1
    # A test that does not build on this machine (a missing header, no BPF) is left out.
    make -C test -j"$(jobs_at_once)" -k CFLAGS='-O1 -w' || true
    (($(find test -name '*.t' | wc -l) > 100)) && touch built
}

# build_liburing_shim DIRECTORY: builds coil::uring and the shim as one library for LD_PRELOAD; optimized, with
# assertions. Each directory of sources is one translation unit, which takes a fraction of the time.
# shellcheck disable=SC2016
build_liburing_shim() {
    local units=$1/units unit source
    if [[ -e $1/shim.so && -z $(find tests/liburing src/uring include/coil/uring -newer "$1/shim.so" -name '*.?pp') ]]; then
        return
    fi
    mkdir -p "$units"
    for source in src/uring src/uring/emulated src/uring/epoll tests/liburing; do
        unit=$units/${source//\//_}.cpp
        printf "#include \"$PWD/%s\"\n" "$source"/*.cpp >"$unit"
        echo "$unit"
    done | xargs -P "$(jobs_at_once)" -L 1 \
        sh -c '"$0" -std=c++20 -O1 -g -fPIC -D_GLIBCXX_ASSERTIONS -Iinclude -c "$1" -o "$1.o"' "$CXX" || return 1
    "$CXX" -shared -o "$1/shim.so.new" "$units"/*.o && mv "$1/shim.so.new" "$1/shim.so"
}

# run_liburing_tests [ARGUMENT-OF-RUN.PY...]
run_liburing_tests() {
    local dir=$PWD/build/liburing/$liburing_version shim=$PWD/build/liburing/shim log=build/log/liburing.log
    local started=$SECONDS line options=()
    if [[ -n ${COIL_LIBURING_SOURCE:-} ]] &&
        [[ ! -e $dir/built || -n $(find "$COIL_LIBURING_SOURCE" -newer "$dir/built" -name '*.[ch]' -print -quit) ]]; then
        copy_liburing "$dir" >build/log/liburing-copy.log 2>&1 || {
            count_failure "liburing: COIL_LIBURING_SOURCE=$COIL_LIBURING_SOURCE has no liburing (build/log/liburing-copy.log)"
            return
        }
    fi
    if [[ ! -e $dir/built ]]; then
        if [[ $(uname -m) != x86_64 ]]; then
            count_skip "liburing: the shim supports x86-64 only"
            return
        fi
        if [[ ! -e $dir/configure ]] && ! has_source_packages; then
            count_skip "liburing: fetching its sources needs Debian's apt-get (COIL_LIBURING_SOURCE=DIRECTORY is another way)"
            return
        fi
        [[ -e $dir/configure ]] || patiently "fetching liburing $liburing_version" build/log/liburing-fetch.log \
            fetch_liburing "$dir" || {
            count_skip "liburing: the source package of $liburing_version cannot be fetched (build/log/liburing-fetch.log)"
            return
        }
        patiently "building liburing's tests" build/log/liburing-build.log build_liburing "$dir" || {
            count_failure "liburing: building its tests (build/log/liburing-build.log)"
            return
        }
    fi
    mkdir -p "$shim"
    patiently "building the shim" build/log/liburing-shim.log build_liburing_shim "$shim" || {
        count_failure "liburing: building the shim (build/log/liburing-shim.log)"
        return
    }
    [[ $liburing_version == "$liburing_of_table" ]] || options=(--other-version)
    say "liburing: its tests take about a minute; results go to build/log/liburing ..."
    python3 tests/liburing/run.py "$dir/test" "$shim/shim.so" tests/liburing/expected.txt --jobs "$(($(jobs_at_once) * 3))" \
        --log build/log/liburing "${options[@]}" "$@" >"$log" || true
    while read -r line; do
        count_failure "liburing: ${line#FAILED: }"
    done < <(grep '^FAILED: ' "$log" || true)
    line=$(tail -n 1 "$log")
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        ((BASH_REMATCH[3] == 0)) ||
            count_skips "${BASH_REMATCH[3]}" "liburing: as tests/liburing/expected.txt says, with the reasons"
    else
        count_failure "liburing: tests/liburing/run.py ($log)"
    fi
    say "liburing $liburing_version: $line in $((SECONDS - started)) s"
}
