#!/usr/bin/env bash
# run.bash PROGRAM FIRST LAST [ARGUMENT...]: runs a test program once per seed on the fault-injecting backend
# (tests/support/fault_environment.hpp), stops at the first seed that fails and prints it. Test files are in memory, as
# fsync(2) on a busy disk takes longer than everything else. Long tests without I/O are excluded and COIL_TEST_LONG is
# unset: here the number of seeds matters.
# tests/faults/rooms lists the rooms whose tests are run.
set -uo pipefail

program=$1 first=$2 last=$3
shift 3
unset COIL_TEST_LONG
export COIL_WATCHDOG=off # its thread opens files, whose descriptors tests count
set -- --gtest_filter=-Depth.*:Idle.*:TimerWheel.*:CancellationCost.* "$@"
if [[ -z ${TMPDIR:-} && -w /dev/shm ]]; then
    export TMPDIR=/dev/shm
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT

skips=""
for ((seed = first; seed <= last; ++seed)); do
    status=0
    COIL_FAULT_SEED=$seed timeout "${COIL_FAULT_TIMEOUT:-290}" "$program" "$@" >"$output" 2>&1 || status=$?
    if ((status != 0)); then
        grep -A 12 ': Failure$' "$output" | head -n 60
        grep -v -e '^\[       OK' -e '^\[ RUN' -e '^\[-----' -e SKIPPED "$output" | tail -n 40
        echo "the last test that began: $(grep '^\[ RUN' "$output" | tail -n 1)"
        echo "FAILED with status $status; replay: COIL_FAULT_SEED=$seed $program $*"
        exit 1
    fi
    skips=$(grep -h '^under faults: ' "$output" || true)
done
echo "seeds $first to $last passed; $(grep -c . <<<"$skips") tests skipped:"
sort <<<"$skips" | uniq -c
