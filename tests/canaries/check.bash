#!/usr/bin/env bash
# check.bash PROGRAM SEEDS: a canary. The runtime in PROGRAM has a planted bug; within so many seeds the simulator must find
# it: a test fails, the process crashes, or it does not end.
set -uo pipefail

program=$1 seeds=$2
if [[ ! -x $program ]]; then
    echo "SKIP: not built; the target is canaries"
    exit 77
fi
output=$(COIL_PROPERTY_PROGRAMS=$((seeds * 4)) timeout 100 "$program" '--gtest_filter=Part/SimulatedPrograms.*/0' 2>&1)
status=$?
if ((status == 0)); then
    echo "$seeds seeds did not find the planted bug"
    exit 1
fi
grep -m 1 -oE 'SEED=[0-9]+' <<<"$output" || true
((status == 124)) && echo "found: it does not end"
grep -m 3 -A 4 -E 'Failure|ERROR: AddressSanitizer|runtime error' <<<"$output"
echo "found (exit status $status)"
exit 0
