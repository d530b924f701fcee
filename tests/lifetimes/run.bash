#!/usr/bin/env bash
# run.bash BINARY FIRST LAST: plays the random programs of the seeds FIRST to LAST (tests/lifetimes/programs_test.cpp) in
# chunks, each in a process of its own. A seed that fails is printed with the reason, and the rest of its chunk goes on
# behind it. The last line is "N passed, N failed"; the exit status is 1 when one failed.
#
# LIFETIME_LOGS: where the output of failing chunks is kept (a directory that is made; otherwise nothing is kept).
# LIFETIME_CHUNK: seeds in a chunk (200). LIFETIME_FILTER: which test (*RandomLifetimes*; *SimulatedLifetimes*).
set -uo pipefail

if (($# != 3)); then
    echo "usage: run.bash BINARY FIRST LAST" >&2
    exit 2
fi
binary=$1 first=$2 last=$3
chunk=${LIFETIME_CHUNK:-200}
filter=${LIFETIME_FILTER:-RandomLifetimes.*}
logs=${LIFETIME_LOGS:-}
output=$(mktemp)
trap 'rm -f "$output"' EXIT
[[ -z $logs ]] || mkdir -p "$logs"

passed=0 failed=0
at=$first
while ((at <= last)); do
    end=$((at + chunk - 1 < last ? at + chunk - 1 : last))
    status=0
    # In a shell of its own, which may say that it was aborted.
    (COIL_LIFETIME_FIRST=$at COIL_LIFETIME_LAST=$end timeout 600 "$binary" --gtest_filter="$filter" >"$output" 2>&1; exit $?) \
        2>/dev/null || status=$?
    if ((status == 0)); then
        passed=$((passed + end - at + 1))
        at=$((end + 1))
        continue
    fi
    # A process that could not say anything failed with the first seed, as far as is known.
    seed=$(grep -o 'COIL_LIFETIME_SEED=[0-9]*' "$output" | tail -n 1 | cut -d= -f2)
    seed=${seed:-$at}
    reason=$(grep -m 1 -E 'did not end within|ERROR: [A-Z]|WARNING: Thread|runtime error|^coil: .*\.$|Failure$|Assertion' "$output")
    detail=$(grep -m 1 -A 4 'Failure$' "$output" | tail -n 4 | tr -s '\n ' ' ')
    echo "seed $seed: status $status: ${reason:-no reason given}${detail:+ ($detail)}"
    if [[ -n $logs ]]; then
        cp "$output" "$logs/seed_$seed.log"
    fi
    passed=$((passed + seed - at))
    failed=$((failed + 1))
    at=$((seed + 1))
done
echo "$passed passed, $failed failed"
((failed == 0))
