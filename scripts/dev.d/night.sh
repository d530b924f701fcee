# shellcheck shell=bash disable=SC2154
# ./dev test --night: runs that take hours. COIL_NIGHT scales them: 0.01 is a trial of some minutes.

# scaled N: N times COIL_NIGHT, at least 1.
scaled() { awk -v n="$1" -v by="${COIL_NIGHT:-1}" 'BEGIN { n = int(n * by); print n < 1 ? 1 : n }'; }

# night_lifetimes NAME PRESET PROGRAMS FILTER: random lifetimes (tests/lifetimes), divided into as many processes as there
# are jobs. NAME=VALUE assignments in the environment (COIL_BACKEND=epoll) select the backend.
night_lifetimes() {
    local name=$1 preset=$2 programs=$3 filter=$4 parts part from to pids=() logs=() i started=$SECONDS
    local binary=build/$preset/tests/test_lifetimes
    build_preset "$preset" test_lifetimes || {
        count_failure "$name: the build (build/log/build-$preset.log)"
        return
    }
    parts=$(jobs_at_once)
    for ((part = 0; part < parts; ++part)); do
        from=$((part * programs / parts + 1)) to=$(((part + 1) * programs / parts))
        logs+=("build/log/night-${name//[^a-z0-9]/-}-$part.log")
        LIFETIME_FILTER=$filter LIFETIME_LOGS=build/log/lifetimes bash tests/lifetimes/run.bash "$binary" "$from" "$to" \
            >"${logs[part]}" 2>&1 &
        pids+=($!)
    done
    for ((i = 0; i < parts; ++i)); do
        if wait "${pids[i]}"; then
            passed=$((passed + 1))
        else
            cat "${logs[i]}"
            count_failure "$name: $(tail -n 1 "${logs[i]}") (${logs[i]})"
        fi
    done
    say "$name: $programs programs in $((SECONDS - started)) s"
}

# night_rounds NAME PRESET ROOM FILTER: tests of one room with COIL_TEST_LONG.
night_rounds() {
    local name=$1 preset=$2 room=$3 filter=$4 log=build/log/night-${1//[^a-z0-9]/-}.log started=$SECONDS
    build_preset "$preset" "test_$room" || {
        count_failure "$name: the build (build/log/build-$preset.log)"
        return
    }
    if COIL_TEST_LONG=1 "build/$preset/tests/test_$room" --gtest_filter="$filter" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        tail -n 40 "$log"
        count_failure "$name ($log)"
    fi
    say "$name: $((SECONDS - started)) s"
}

run_night() {
    export COIL_TEST_BROWSER=1
    local many
    need sanitizers
    many=$(scaled 100000)
    COIL_TEST_LONG=1 run_tests "all rounds, C++23" cxx23 all -LE "consumer|$once" -E '^faults\.' --timeout 3600
    run_tests "tsan, all rooms" tsan all -LE "consumer|$once" -E '^faults\.'
    night_lifetimes "lifetimes, asan" asan "$many" 'RandomLifetimes.*'
    night_lifetimes "lifetimes, tsan" tsan "$many" 'RandomLifetimes.*'
    COIL_BACKEND=epoll night_lifetimes "lifetimes, epoll" asan "$many" 'RandomLifetimes.*'
    night_lifetimes "lifetimes, simulator" asan "$many" 'SimulatedLifetimes.*'
    COIL_PROPERTY_PROGRAMS=$(scaled 1000000) night_rounds "random programs" asan property '*NothingIsLeftOfThem*'
    night_rounds "differential scripts" cxx23 conformance '*Script*:*Differential*:*Tree*'
    night_rounds "swappers" cxx23 fs '*Swapper*:*HostileTrees*'
    HOSTILE_CLIENTS=$(scaled 10000) HOSTILE_DESCRIPTORS=$(scaled 1000) run_tests "servers, 10 000 clients" cxx23 examples/all \
        -R '^examples\.(http_files|chat|logs|redis_pool)$' --timeout 3600
    run_fault_tests debug "$(scaled 1000)"
    run_liburing_tests
    need lint
    check "clang-tidy, the tests as well" check_tidy yes
}
