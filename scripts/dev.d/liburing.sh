# shellcheck shell=bash disable=SC2154
# Runs liburing's own tests on io_uring and on the epoll backend (tests/liburing/). They come from Debian's source
# package and are unpacked in build/liburing.

# The version that tests/liburing/expected.txt describes. To try another: COIL_LIBURING=2.9-1 ./dev test --liburing
liburing_version=${COIL_LIBURING:-2.15-1}

# apt_sources COMMAND...: runs apt-get with separate package lists that contain only Debian's source packages.
apt_sources() {
    local state=$PWD/build/liburing/apt
    apt-get -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$state/sources" -o Dir::State::lists="$state/lists" \
        -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=1 "$@"
}

# fetch_liburing DIRECTORY: unpacks the source package in DIRECTORY.
fetch_liburing() {
    local dir=$1 state=$PWD/build/liburing/apt archive
    mkdir -p "$state/sources" "$state/lists/partial" "$dir.new"
    cat >"$state/sources/debian.sources" <<'END'
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm trixie sid
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
    apt_sources update || return 1
    (cd "$dir.new" && apt_sources source --download-only "liburing=$liburing_version") || return 1
    archive=$(find "$dir.new" -name 'liburing_*.orig.tar.gz' -o -name 'liburing_*.orig.tar.xz' | head -n 1)
    tar -xf "$archive" -C "$dir.new" --strip-components=1 || return 1
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
    make -C test -j"$(jobs_at_once)" -k CFLAGS='-g -O1 -w' || true
    (($(find test -name '*.t' | wc -l) > 200)) && touch built
}

# build_liburing_shim DIRECTORY: builds the backend as a library for LD_PRELOAD; optimized, with assertions.
# shellcheck disable=SC2016
build_liburing_shim() {
    local objects=$1/shim.d source ccache=''
    if [[ -e $1/shim.so && -z $(find tests/liburing src/uring include/coil/uring -newer "$1/shim.so" -name '*.?pp') ]]; then
        return
    fi
    ! have ccache || ccache=ccache
    mkdir -p "$objects"
    printf '%s\n' tests/liburing/*.cpp src/uring/*.cpp src/uring/*/*.cpp |
        while read -r source; do printf '%s %s\n' "$source" "$objects/${source//\//_}.o"; done |
        xargs -P "$(jobs_at_once)" -L 1 sh -c \
            "$ccache"' "$0" -std=c++20 -O1 -g -fPIC -D_GLIBCXX_ASSERTIONS -Iinclude -c "$1" -o "$2"' "$CXX" || return 1
    "$CXX" -shared -o "$1/shim.so" "$objects"/*.o
}

run_liburing_tests() {
    local dir=$PWD/build/liburing/$liburing_version shim=$PWD/build/liburing/shim started=$SECONDS counts
    if [[ ! -e $dir/built ]]; then
        if ! have apt-get || [[ ! -e /usr/share/keyrings/debian-archive-keyring.gpg || $(uname -m) != x86_64 ]]; then
            count_skip "liburing: fetching its sources needs Debian's apt-get, and the shim supports x86-64 only"
            return
        fi
        [[ -e $dir/configure ]] || patiently "fetching liburing $liburing_version" build/log/liburing-fetch.log \
            fetch_liburing "$dir" || { count_failure "liburing: fetching it" && return; }
        patiently "building liburing's tests" build/log/liburing-build.log build_liburing "$dir" ||
            { count_failure "liburing: building its tests" && return; }
    fi
    mkdir -p "$shim"
    patiently "building the shim" build/log/liburing-shim.log build_liburing_shim "$shim" ||
        { count_failure "liburing: building the shim" && return; }
    python3 tests/liburing/run.py "$dir/test" "$shim/shim.so" tests/liburing/expected.txt --jobs "$(($(jobs_at_once) * 2))" \
        --log build/log/liburing "$@" | tee build/log/liburing.log || true
    counts=$(tail -n 1 build/log/liburing.log)
    if [[ $counts =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
        passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
    else
        count_failure "liburing: tests/liburing/run.py"
    fi
    say "liburing $liburing_version: $counts in $((SECONDS - started)) s"
}
