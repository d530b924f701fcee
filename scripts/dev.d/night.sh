# shellcheck shell=bash disable=SC2154
# ./dev test --night: runs that take hours. COIL_NIGHT scales them: 0.01 is a trial that takes a few minutes.

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

# night_swappers NAME PRESET: attacks on the functions that work on directory trees (tests/fs/swappers.bash). An attacker
# exchanges names in the tree while a function works on it; each pair of attacker and function runs for ten minutes.
night_swappers() {
    local name=$1 preset=$2 log=build/log/night-${1//[^a-z0-9]/-}.log started=$SECONDS
    build_preset "$preset" test_fs || {
        count_failure "$name: the build (build/log/build-$preset.log)"
        return
    }
    if bash tests/fs/swappers.bash "build/$preset/tests/test_fs" "$(scaled 600)" $((2 * $(jobs_at_once))) >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        tail -n 80 "$log"
        count_failure "$name ($log)"
    fi
    say "$name: $(tail -n 1 "$log"), in $((SECONDS - started)) s ($log)"
}

# night_scripts NAME TEST SEEDS [CHUNK]: random scripts on all backends (tests/conformance/run.bash). A chunk of seeds, 1000
# by default, must end within 15 minutes.
night_scripts() {
    local name=$1 filter=Differential.$2 seeds=$3 chunk=${4:-1000} log=build/log/night-${1//[^a-z0-9]/-}.log started=$SECONDS
    build_preset cxx23 test_conformance || {
        count_failure "$name: the build (build/log/build-cxx23.log)"
        return
    }
    if SCRIPT_CHUNK=$chunk bash tests/conformance/run.bash build/cxx23/tests/test_conformance "$filter" 1 "$seeds" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        tail -n 40 "$log"
        count_failure "$name ($log)"
    fi
    say "$name: $(tail -n 1 "$log"), in $((SECONDS - started)) s"
}

# night_fuzz: libFuzzer for ten minutes on each parser (tests/fuzz), on all at the same time.
night_fuzz() {
    local corpora=(tests/fuzz/corpus/*) logs=() pids=() corpus name i started=$SECONDS
    build_preset asan fuzzers || {
        count_failure "fuzz: the build (build/log/build-asan.log)"
        return
    }
    for corpus in "${corpora[@]}"; do
        name=${corpus##*/}
        logs+=("build/log/night-fuzz-$name.log")
        tests/fuzz/run.bash "build/asan/tests/fuzz_$name" "$corpus" "$(scaled 600)" build/log/fuzz >"${logs[-1]}" 2>&1 &
        pids+=($!)
    done
    for ((i = 0; i < ${#pids[@]}; ++i)); do
        if wait "${pids[i]}"; then
            passed=$((passed + 1))
            say "fuzz: $(tail -n 1 "${logs[i]}")"
        else
            tail -n 60 "${logs[i]}"
            count_failure "fuzz: $(tail -n 1 "${logs[i]}") (${logs[i]})"
        fi
    done
    say "fuzz: $((SECONDS - started)) s"
}

run_night() {
    want browser
    local many
    need sanitizers
    many=$(scaled 100000)
    COIL_TEST_LONG=1 run_tests "all rounds, C++23" cxx23 all -LE "consumer|$once" -E '^faults\.|Swapper' --timeout 3600
    run_tests "tsan, all rooms" tsan all -LE "consumer|$once" -E '^faults\.'
    night_lifetimes "lifetimes, asan" asan "$many" 'RandomLifetimes.*'
    night_lifetimes "lifetimes, tsan" tsan "$many" 'RandomLifetimes.*'
    COIL_BACKEND=epoll night_lifetimes "lifetimes, epoll" asan "$many" 'RandomLifetimes.*'
    night_lifetimes "lifetimes, simulator" asan "$many" 'SimulatedLifetimes.*'
    COIL_PROPERTY_PROGRAMS=$(scaled 1000000) night_rounds "random programs" asan property '*NothingIsLeftOfThem*'
    many=$(scaled 1000000)
    night_scripts "scripts of transfers" AllBackendsGiveTheSameResults "$many"
    night_scripts "scripts of cancellations" G3_CancelledOperationsEndTheSameOnAllBackends "$many"
    night_scripts "scripts of cancelled calls on files" G3_CancelledCallsOnFilesEndTheSameOnAllBackends "$many"
    night_scripts "scripts of trees" TreesAreTheSameOnAllBackends "$many" 200
    night_scripts "scripts of stopped functions" G3_StoppedFunctionsOfFilesAreTheSameOnAllBackends "$many" 200
    night_fuzz
    night_swappers "swappers" cxx23
    night_rounds "trees of other users" cxx23 fs '*HostileTrees*:*Opening*:*Leases*:*SwapperCanary*'
    HOSTILE_CLIENTS=$(scaled 10000) HOSTILE_DESCRIPTORS=$(scaled 1000) run_tests "servers, 10 000 clients" cxx23 examples/all \
        -R '^examples\.(http_files|chat|logs|redis_pool)$' --timeout 3600
    COIL_TEST_LONG=1 run_adapter_tests -R TestSsl --timeout 1800
    run_fault_tests debug "$(scaled 1000)"
    run_liburing_tests
    run_filesystem_tests
    need lint
    check "clang-tidy, the tests as well" check_tidy yes
}
