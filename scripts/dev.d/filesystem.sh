# shellcheck shell=bash disable=SC2154
# Runs the tests of std::filesystem of libstdc++ and libc++ on coil::fs (tests/std_filesystem/). They come from Debian's
# source packages, of which build/filesystem/sources keeps these tests.

# The versions that tests/std_filesystem/expected.txt describes.
readonly filesystem_gcc=14.2.0-19 filesystem_llvm=1:19.1.7-3

# fetch_filesystem_tests DIRECTORY: unpacks the tests as DIRECTORY/libstdc++ and DIRECTORY/libc++.
fetch_filesystem_tests() {
    local new=$1.new
    rm -rf "$new"
    mkdir -p "$new/libstdc++" "$new/libc++"
    fetch_tarball "gcc-${filesystem_gcc%%.*}=$filesystem_gcc" "$new" || return 1
    # The package's tarball contains GCC's.
    tar -xOf "$tarball" --wildcards '*/gcc-*.tar.xz' |
        tar -xJ -C "$new/libstdc++" --strip-components=2 --wildcards \
            '*/libstdc++-v3/testsuite/27_io/filesystem/*' '*/libstdc++-v3/testsuite/util/*' || return 1
    local llvm=${filesystem_llvm#*:}
    fetch_tarball "llvm-toolchain-${llvm%%.*}=$filesystem_llvm" "$new" || return 1
    tar -xf "$tarball" -C "$new/libc++" --strip-components=2 --wildcards \
        '*/libcxx/test/std/input.output/filesystems/*' '*/libcxx/test/support/*' || return 1
    rm "$new"/*.orig.tar.*
    rm -rf "$1" && mv "$new" "$1"
}

# run_filesystem_tests [ARGUMENT-OF-RUN.PY...]
run_filesystem_tests() {
    local sources=build/filesystem/sources-$filesystem_gcc-${filesystem_llvm#*:} log=build/log/filesystem.log
    local started=$SECONDS line directory=${TMPDIR:-/dev/shm}
    [[ -w $directory ]] || directory=/tmp
    if [[ ! -e $sources ]]; then
        if ! has_source_packages; then
            count_skip "filesystem: fetching the tests needs Debian's apt-get"
            return
        fi
        patiently "fetching libstdc++'s and libc++'s tests (260 MB, of which 4 MB are kept)" build/log/filesystem-fetch.log \
            fetch_filesystem_tests "$sources" || {
            count_skip "filesystem: the source packages cannot be fetched (build/log/filesystem-fetch.log)"
            return
        }
    fi
    build_preset debug filesystem_on_coil filesystem_on_standard || {
        count_failure "filesystem: the build (build/log/build-debug.log)"
        return
    }
    say "filesystem: building and running the tests; results go to build/log/filesystem ..."
    python3 tests/std_filesystem/run.py "$sources" build/debug/tests/std_filesystem tests/std_filesystem/expected.txt \
        --compiler "$CXX" --directory "$directory" --jobs "$(jobs_at_once)" "$@" >"$log" || true
    while read -r line; do
        count_failure "filesystem: ${line#FAILED: }"
    done < <(grep '^FAILED: ' "$log" || true)
    line=$(tail -n 1 "$log")
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
    else
        count_failure "filesystem: tests/std_filesystem/run.py ($log)"
    fi
    say "filesystem: $line in $((SECONDS - started)) s"
}
