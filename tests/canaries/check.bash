#!/usr/bin/env bash
# check.bash PROGRAM SEEDS: a canary. The runtime in PROGRAM has a planted bug, which the simulator must find within SEEDS
# seeds: a test fails, the process crashes, or it hangs.
set -uo pipefail

program=$1 seeds=$2
if [[ ! -x $program ]]; then
    echo "SKIP: not built; build the target canaries"
    exit 77
fi
output=$(COIL_PROPERTY_PROGRAMS=$((seeds * 4)) timeout 100 "$program" '--gtest_filter=Part/SimulatedPrograms.*/0' 2>&1)
status=$?
if ((status == 0)); then
    echo "$seeds seeds did not find the planted bug"
    exit 1
fi
grep -m 1 -oE 'SEED=[0-9]+' <<<"$output" || true
((status == 124)) && echo "found: the program hangs"
grep -m 3 -A 4 -E 'Failure|ERROR: AddressSanitizer|runtime error' <<<"$output"
echo "found (exit status $status)"
exit 0
