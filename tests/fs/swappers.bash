#!/usr/bin/env bash
# swappers.bash BINARY SECONDS [JOBS [FILTER]]: attacks each function on trees for SECONDS (swapper.hpp), by each kind of
# attacker, JOBS at a time (default: two per processor, so that attackers and functions also share a processor). FILTER is a
# filter of GoogleTest (default: all attacks). Prints a line per function and attacker: how often the function was called, and
# how many names were exchanged meanwhile. The last line is "N passed, N skipped, N failed"; the exit status is 1 if a test
# has failed.
set -uo pipefail
export COIL_WATCHDOG=off # its reports depend on the load

if (($# < 2 || $# > 4)); then
    echo "usage: swappers.bash BINARY SECONDS [JOBS [FILTER]]" >&2
    exit 2
fi
binary=$1 seconds=$2 jobs=${3:-$((2 * $(nproc)))} filter=${4:-FsSwapper*-FsSwapperCanary*}
export COIL_SWAP_SECONDS=$seconds
# A disk's journal would be the bottleneck.
[[ -n ${TMPDIR:-} || ! -w /dev/shm ]] || export TMPDIR=/dev/shm
outputs=$(mktemp -d)
declare -A running=() # process ID -> test
trap 'for pid in "${!running[@]}"; do kill "$pid"; done 2>/dev/null; rm -rf "$outputs"' EXIT
trap 'exit 1' INT TERM

# The full names; a parameter is followed by a comment.
mapfile -t tests < <("$binary" --gtest_list_tests --gtest_filter="$filter" |
    awk '/^[^ ].*\.( |$)/ { suite = $1; next } /^  / { print suite $1 }')
if ((${#tests[@]} == 0)); then
    echo "no test matches $filter" >&2
    exit 1
fi

passed=0 skipped=0 failed=0 next=0
while ((next < ${#tests[@]} || ${#running[@]} > 0)); do
    while ((next < ${#tests[@]} && ${#running[@]} < jobs)); do
        test=${tests[next]}
        # A function that hangs, or a round that never ends, is a failure.
        timeout $((2 * seconds + 300)) "$binary" --gtest_filter="$test" >"$outputs/${test//\//-}" 2>&1 &
        running[$!]=$test
        next=$((next + 1))
    done
    status=0
    wait -n -p pid || status=$?
    test=${running[$pid]} output=$outputs/${running[$pid]//\//-}
    unset "running[$pid]"
    figures=$(sed -n 's/^swapped: //p' "$output")
    if ((status == 0)) && [[ -n $figures ]]; then
        passed=$((passed + 1))
        echo "passed $test: $figures"
    elif ((status == 0)) && grep -q '^\[  SKIPPED \] 1 test' "$output"; then
        skipped=$((skipped + 1))
        echo "skipped $test"
    else
        failed=$((failed + 1))
        echo "FAILED $test: status $status"
        tail -n 60 "$output"
    fi
    rm -f "$output"
done
echo "$passed passed, $skipped skipped, $failed failed"
((failed == 0))
