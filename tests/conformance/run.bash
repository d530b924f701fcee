#!/usr/bin/env bash
# run.bash BINARY TEST FIRST LAST [JOBS]: plays the random scripts of the seeds FIRST to LAST (differential.hpp) in chunks,
# each in a separate process, JOBS at a time (default: two per processor, as scripts mostly wait). TEST is a filter of
# GoogleTest. The output of a failed chunk has the seed and its script, shrunk; COIL_DIFFERENTIAL_SEED=n plays it alone.
# The last line is "N passed, N failed" (seeds; a chunk that fails counts as a whole); the exit status is 1 if a chunk
# failed.
#
# SCRIPT_CHUNK: seeds per chunk (default: 1000). SCRIPT_LIMIT: seconds for a chunk (default: 900).
set -uo pipefail
export COIL_WATCHDOG=off # its reports depend on the load
export COIL_CONFORMANCE_IDLE=park # leaves the processors to the other processes

if (($# < 4 || $# > 5)); then
    echo "usage: run.bash BINARY TEST FIRST LAST [JOBS]" >&2
    exit 2
fi
binary=$1 test=$2 first=$3 last=$4 jobs=${5:-$((2 * $(nproc)))}
chunk=${SCRIPT_CHUNK:-1000}
limit=${SCRIPT_LIMIT:-900}
# Files in memory: synchronizing a disk takes most of the time otherwise.
[[ -n ${TMPDIR:-} || ! -w /dev/shm ]] || export TMPDIR=/dev/shm
outputs=$(mktemp -d)
declare -A running=() # process ID -> first seed
trap 'for pid in "${!running[@]}"; do kill "$pid"; done 2>/dev/null; rm -rf "$outputs"' EXIT
trap 'exit 1' INT TERM

last_of() { echo $(($1 + chunk - 1 < last ? $1 + chunk - 1 : last)); }

passed=0 failed=0 at=$first told=$SECONDS
while ((at <= last || ${#running[@]} > 0)); do
    while ((at <= last && ${#running[@]} < jobs)); do
        COIL_DIFFERENTIAL_FIRST=$at COIL_DIFFERENTIAL_SEEDS=$(($(last_of "$at") - at + 1)) \
            timeout "$limit" "$binary" --gtest_filter="$test" >"$outputs/$at" 2>&1 &
        running[$!]=$at
        at=$(($(last_of "$at") + 1))
    done
    status=0
    wait -n -p pid || status=$?
    from=${running[$pid]}
    unset "running[$pid]"
    count=$(($(last_of "$from") - from + 1))
    # A filter that matches no test would pass.
    if ((status == 0)) && grep -q '^\[  PASSED  \] [1-9]' "$outputs/$from"; then
        passed=$((passed + count))
    else
        failed=$((failed + count))
        echo "seeds $from to $(last_of "$from"): status $status"
        grep -vE '^(Note|Running|\[[-= ])' "$outputs/$from"
    fi
    rm -f "$outputs/$from"
    if ((SECONDS - told >= 60)); then
        told=$SECONDS
        echo "... $passed passed, $failed failed after $SECONDS s"
    fi
done
echo "$passed passed, $failed failed"
((failed == 0))
