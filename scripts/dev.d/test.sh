# shellcheck shell=bash disable=SC2154
# Runs the tests and counts the results.

passed=0 failed=0 skipped=0
failures=() skips=() failure_output=

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1}

count_failure() {
    failed=$((failed + 1))
    failures+=("$1")
}
count_skip() {
    count_skips 1 "$1"
}
# count_skips NUMBER REASON
count_skips() {
    skipped=$((skipped + $1))
    skips+=("$2")
}

# A command, with its arguments, that starts ctest; empty: ctest is started directly.
behind=()

# run_tests NAME PRESET TARGETS [CTEST-ARGUMENT...]: builds these targets of the preset (all: everything), runs its
# tests and counts the results.
run_tests() {
    local name=$1 preset=$2 targets dir=build/$2 log=build/log/test-${1//[^a-z0-9]/-}.log started=$SECONDS status=0
    local before=("$passed" "$failed" "$skipped")
    read -ra targets <<<"$3"
    shift 3
    if ! build_preset "$preset" "${targets[@]}"; then
        count_failure "$name: the build (build/log/build-$preset.log)"
        return
    fi
    started=$SECONDS
    "${behind[@]}" ctest --test-dir "$dir" -j "$(jobs_at_once)" --output-on-failure --no-tests=ignore "$@" 2>&1 | tee "$log" |
        sed -u -e '/^[0-9]*% tests passed/,$d' -e '/^Internal ctest/d' -e '/^$/d' -e '/^Test project/d' -e '/^ *Start *[0-9]*:/d' |
        meter "testing $name" || status=$?
    count_results "$name" "$log" "$dir/Testing/Temporary/LastTest.log"
    show_failures "$dir/Testing/Temporary/LastTest.log"
    if ((status != 0 && failed == before[1])); then
        count_failure "$name: ctest ($log)"
        tail -n 5 "$log" >&2
    fi
    say "$name: $((passed - before[0])) passed, $((failed - before[1])) failed," \
        "$((skipped - before[2])) skipped in $((SECONDS - started)) s"
}

# count_results NAME CTEST-OUTPUT CTEST-LOG: adds the results of one ctest run to the totals.
count_results() {
    local name=$1 test result
    while read -r result test; do
        case $result in
            passed) passed=$((passed + 1)) ;;
            skipped) count_skip "$name: $test: $(skip_reason "$test" "$3")" ;;
            failed) count_failure "$name: $test" ;;
        esac
    done < <(awk '/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: / {
        result = "failed"
        if (/ Passed +[0-9.]+ sec/) result = "passed"
        if (/\*\*\*Skipped/ || /\*\*\*Not Run \(Disabled\)/) result = "skipped"
        sub(/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /, "")
        print result, $1
    }' "$2")
}

# show_failures CTEST-LOG: prints the last 60 lines of every failed test, and keeps them for the end of the output, which
# may be all that a CI system keeps.
show_failures() {
    local output
    output=$(awk '
        /^[0-9]+\/[0-9]+ Testing: / { test = $3; count = 0 }
        { line[count++] = $0 }
        /^Test Failed\./ {
            printf "---- %s\n", test
            for (i = count > 60 ? count - 60 : 0; i < count; ++i) print line[i]
        }' "$1")
    [[ $output ]] || return 0
    printf '%s\n' "$output"
    failure_output+=$output$'\n'
}

# skip_reason TEST CTEST-LOG: prints the script's "SKIP: ..." or the line after GoogleTest's "...: Skipped".
skip_reason() {
    awk -v test="$1" '
        /^[0-9]+\/[0-9]+ Testing: / { mine = ($3 == test) }
        mine && next_is_it { print; exit }
        mine && /^SKIP:/ { sub(/^SKIP: */, ""); print; exit }
        mine && /: Skipped$/ { next_is_it = 1 }
        ' "$2"
}

report() {
    local line
    if ((passed + failed + skipped == 0)); then
        count_failure "no test matches"
    fi
    for line in "${skips[@]}"; do
        say "skipped: $line"
    done
    [[ -z $failure_output || -t 1 ]] || printf '%s' "$failure_output"
    for line in "${failures[@]}"; do
        say "FAILED: $line"
    done
    if ((skipped)); then
        echo "$passed passed, $failed failed, $skipped skipped"
    else
        echo "$passed passed, $failed failed"
    fi
    ((failed == 0))
}

# run_fault_tests PRESET SEEDS: runs the rooms that do I/O once per seed on the fault-injecting backend, which delays,
# reorders and interrupts. The seeds of a room run in parallel, divided into as many parts as there are jobs.
run_fault_tests() {
    local preset=$1 seeds=$2 dir=build/$1/tests room part parts from to pids=() names=() i log started=$SECONDS
    local rooms
    mapfile -t rooms <tests/faults/rooms
    build_preset "$preset" "${rooms[@]/#/test_}" || {
        count_failure "faults: the build (build/log/build-$preset.log)"
        return
    }
    parts=$(jobs_at_once)
    ((parts <= seeds)) || parts=$seeds
    for room in "${rooms[@]}"; do
        pids=() names=()
        for ((part = 0; part < parts; ++part)); do
            from=$((part * seeds / parts + 1)) to=$(((part + 1) * seeds / parts))
            log=build/log/faults-$room-$part.log
            tests/faults/run.bash "$dir/test_$room" "$from" "$to" >"$log" 2>&1 &
            pids+=($!) names+=("$log")
        done
        for ((i = 0; i < ${#pids[@]}; ++i)); do
            if wait "${pids[i]}"; then
                passed=$((passed + 1))
                say "faults: $room: $(head -n 1 "${names[i]}")"
            else
                count_failure "faults: $room: $(tail -n 1 "${names[i]}") (${names[i]})"
            fi
        done
        while read -r count line; do
            count_skip "faults: $room: $count: $line"
        done < <(sed -n '2,$s/^ *//p' "${names[0]}" | grep '^[0-9]* under faults' || true)
    done
    say "faults: $seeds seeds in $((SECONDS - started)) s"
}

# run_without_io_uring PRESET TARGETS [CTEST-ARGUMENT...]: runs the tests as in a container, where a seccomp filter
# forbids io_uring and contexts fall back to the epoll backend.
run_without_io_uring() {
    local preset=$1 what=$2 launcher=build/$1/tests/without_io_uring tmp=${TMPDIR:-/dev/shm}
    shift 2
    [[ -w $tmp ]] || tmp=/tmp
    if ! build_preset "$preset" without_io_uring; then
        count_failure "epoll: the build (build/log/build-$preset.log)"
        return
    fi
    behind=("$launcher")
    TMPDIR=$tmp run_tests "epoll, $preset" "$preset" "$what" -LE "consumer|faults|$once" \
        -E '^conformance\..*/linux' "$@"
    behind=()
}

# Runs the demo as well; it fails if it hangs or prints a wrong answer.
demo_without_io_uring() {
    local log=build/log/demo-epoll.log
    need demo
    build_preset release examples/all bench/demo/all || {
        count_failure "epoll, demo: the build (build/log/build-release.log)"
        return
    }
    if "build/$1/tests/without_io_uring" bench/demo/run build/release --rounds 1 >"$log" 2>&1; then
        passed=$((passed + 1))
        say "epoll: the demo ran ($log)"
    else
        tail -n 20 "$log" >&2
        count_failure "epoll: the demo ($log)"
    fi
}

# Tests that do not depend on the preset and run once: compile-fail tests, the simulator's canaries, the debuggers'
# commands, and the models, which are always optimized and never sanitized.
readonly once='canaries|compile_fail|debuggers|model'
# The debuggers' commands also run on an optimized library.
readonly once_at_all=${once/debuggers|/}
# The labels of what every run repeats on the epoll backend. To run everything on it: ./dev test --backend epoll.
readonly on_epoll='^(conformance|net|epoll)$'

# run_adapter_tests [CTEST-ARGUMENT...]: the adapters of other libraries, with AddressSanitizer, against their servers, and
# TLS against other implementations of it.
run_adapter_tests() {
    need adapters adapted_servers tls tls_peers
    configure asan || {
        count_failure "interop: configuring build/asan"
        return
    }
    if ! cmake -DCOIL_BUILD_ADAPTER_TESTS=ON build/asan >build/log/configure-asan.log 2>&1; then
        tail -n 20 build/log/configure-asan.log >&2
        count_failure "interop: configuring build/asan (build/log/configure-asan.log)"
        return
    fi
    run_tests interop asan adapters/all -L adapters --timeout 300 "$@"
}

# Tests that start no threads and therefore do not run under ThreadSanitizer: see tests/CMakeLists.txt.
readonly single_threaded='conformance|docs|examples|faults|fuzz|property'

# Uses one seed per room on the fault-injecting backend. Test files are in memory; the long tests use the disk.
run_sanitized() {
    local preset=$1 dir=${TMPDIR:-/dev/shm} what=all left_out="consumer|adapters|$once" seeds='^faults\..*seed_[^1]'
    shift
    [[ -w $dir ]] || dir=/tmp
    if [[ $preset == tsan ]]; then
        what=tests_with_threads left_out+="|$single_threaded" seeds='_NOT_BUILT$'
    fi
    TMPDIR=$dir run_tests "$preset" "$preset" "$what" -LE "$left_out" -E "$seeds" "$@"
}

dev_test() {
    local full=no gcc=no liburing=no filesystem=no interop=no night=no preset='' faults=0 backend='' select=()
    while (($#)); do
        case $1 in
            --full) full=yes ;;
            --liburing) liburing=yes ;;
            --filesystem) filesystem=yes ;;
            --interop) interop=yes ;;
            --night) night=yes ;;
            --gcc) gcc=yes ;;
            --preset) preset=$2 && shift ;;
            --backend | --kernel) # --kernel is retired
                [[ ${2:-} == @(epoll|io_uring) ]] || die "usage: ./dev test --backend epoll|io_uring (the default)"
                backend=$2 && shift
                ;;
            --faults)
                [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || die "usage: ./dev test --faults N, where N is the number of seeds"
                faults=$2 && shift
                ;;
            -*) select+=("$1" "$2") && shift ;;
            *) select+=(-R "$1") ;;
        esac
        shift
    done

    if [[ $gcc == yes ]]; then
        run_gcc_tests "${select[@]}"
        if [[ $full == no ]]; then
            report
            return
        fi
    fi
    need build test
    want model
    need_compiler
    want debuggers
    if [[ $night == yes ]]; then
        run_night
    elif [[ $liburing == yes ]]; then
        run_liburing_tests "${select[@]}"
    elif [[ $filesystem == yes ]]; then
        run_filesystem_tests "${select[@]}"
    elif [[ $interop == yes ]]; then
        need sanitizers
        run_adapter_tests "${select[@]}"
    elif [[ $backend == epoll ]]; then
        run_without_io_uring "${preset:-debug}" all "${select[@]}"
        ((${#select[@]})) || demo_without_io_uring "${preset:-debug}"
    elif ((faults)); then
        run_fault_tests "${preset:-debug}" "$faults"
    elif [[ -n $preset ]]; then
        run_tests "$preset" "$preset" all -LE consumer -E '^faults\..*seed_[^12]' "${select[@]}"
    else
        need sanitizers
        ASAN_SYMBOLIZER_PATH=$(command -v "llvm-symbolizer-$clang_major" || true)
        export ASAN_SYMBOLIZER_PATH
        TSAN_OPTIONS+=:external_symbolizer_path=$ASAN_SYMBOLIZER_PATH
        if [[ $full == no ]]; then
            run_sanitized asan "${select[@]}"
            run_without_io_uring asan all -L "$on_epoll" "${select[@]}"
            run_tests "models, debuggers and compile-fail tests" once tests_once -L "$once" "${select[@]}"
        else
            COIL_TEST_LONG=4 run_tests "long, C++23" cxx23 all -LE "consumer|$once_at_all" -E '^faults\..*seed_[345]' \
                --timeout 600 "${select[@]}"
            run_sanitized tsan "${select[@]}"
            want modules
            want_new_cmake
            run_tests consumers once coil_libraries -L consumer --timeout 600 "${select[@]}"
            if ((${#select[@]} == 0)); then
                run_liburing_tests
                run_filesystem_tests
            fi
        fi
    fi
    report
}
