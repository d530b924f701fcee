# shellcheck shell=bash disable=SC2154
# Configures and builds presets; runs the demo and the benchmarks, which use a release build.

cached() { sed -n "s/^$2:[A-Z]*=//p" "build/$1/CMakeCache.txt" 2>/dev/null; }

# configure PRESET: runs CMake if necessary.
configure() {
    local preset=$1 dir=build/$1 fresh=()
    if [[ -e $dir/CMakeCache.txt && $(basename "$(cached "$preset" CMAKE_CXX_COMPILER)") != $(basename "$CXX") ]]; then
        fresh=(--fresh)
    elif [[ -e $dir/build.ninja && $dir/build.ninja -nt CMakePresets.json ]] &&
        ! grep -q 'NOTFOUND$' "$dir/CMakeCache.txt"; then
        return
    fi
    mkdir -p build/log
    # Some programs that the benchmarks compare with are written in C.
    local cc=${CXX/clang++/clang}
    if ! cmake --preset "$preset" "${fresh[@]}" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_C_COMPILER="${cc/g++/gcc}" \
        >"build/log/configure-$preset.log" 2>&1; then
        cat "build/log/configure-$preset.log" >&2
        say "configuring build/$preset failed"
        return 1
    fi
}

# build_preset PRESET [TARGET...]: sets $built to whether anything was built.
build_preset() {
    local preset=$1 log=build/log/build-$1.log started=$SECONDS
    shift
    configure "$preset" || return 1
    if ! run_ninja "$preset" "$@"; then
        say "building build/$preset failed (full log: $log)"
        return 1
    fi
    built=yes
    if grep -q '^ninja: no work to do' "$log"; then
        built=no
    else
        say "built build/$preset with $CXX in $((SECONDS - started)) s"
    fi
}

run_ninja() {
    local preset=$1 log=build/log/build-$1.log
    shift
    ninja -C "build/$preset" -j "$(jobs_at_once)" "$@" 2>&1 | tee "$log" |
        { grep --line-buffered -v -e '^ninja: Entering' -e '^ninja: no work' -e 'Re-checking globbed' -e '^-- ' || true; } |
        meter "building $preset"
}

dev_build() {
    local preset
    (($#)) || set -- release
    need build
    need_compiler
    for preset in "$@"; do
        case $preset in
            release) ;;
            asan | tsan) need test sanitizers ;;
            debug | once | cxx23 | gcc) need test ;;
            *) die "there is no preset '$preset'" ;;
        esac
        build_preset "$preset"
        [[ $built == yes ]] || say "build/$preset is up to date"
    done
}

dev_modules() {
    need_compiler
    [[ -n $clang_major ]] || die "this needs clang, which lists the declarations of a header: CXX=clang++-$newest_clang ./dev modules"
    python3 modules/generate.py "$CXX"
    say "modules/*.cppm match the headers"
}

dev_demo() {
    need build demo
    need_compiler
    configure release
    local targets=(examples/all)
    [[ -e bench/demo/CMakeLists.txt ]] && targets+=(bench/demo/all)
    build_preset release "${targets[@]}"
    exec bench/demo/run build/release "$@"
}

# Names select benchmarks; arguments that begin with "--" are passed on to each script, for example --quick.
dev_bench() {
    local name names=() options=() status=0
    local all=(micro cancellation net clients stream send udp messages proxy tls lines timers files threads sync exec interleave observe fs trees adapters compile)
    for name in "$@"; do
        case $name in
            --*) options+=("$name") ;;
            *)
                [[ " ${all[*]} " == *" $name "* ]] || die "there is no benchmark '$name': ${all[*]}"
                names+=("$name")
                ;;
        esac
    done
    ((${#names[@]})) || names=("${all[@]}")
    need build bench
    want bench_peers
    need_compiler
    build_preset release
    for name in "${names[@]}"; do
        say "benchmark: $name"
        case $name in
            cancellation) build/release/bench/bin/bench_cancellation || status=1 ;;
            trees) bench/fs/trees build/release "${options[@]}" || status=1 ;;
            clients | stream | send | udp | messages | proxy) "bench/net/$name" build/release "${options[@]}" || status=1 ;;
            *) "bench/$name/run" build/release "${options[@]}" || status=1 ;;
        esac
    done
    return "$status"
}
