#!/usr/bin/env bash
# run.bash BINARY FIRST LAST: runs the random programs of the seeds FIRST to LAST (tests/lifetimes/programs_test.cpp) in
# chunks, each in a separate process. A failing seed is printed with the reason, the program and its state; its chunk
# continues with the next seed. The last line is "N passed, N failed"; the exit status is 1 if one failed.
#
# LIFETIME_LOGS: a directory for the output of failing chunks (created; by default nothing is kept). LIFETIME_CHUNK:
# seeds per chunk (200). LIFETIME_FILTER: the test to run (*RandomLifetimes*; *SimulatedLifetimes*).
set -uo pipefail
export COIL_WATCHDOG=off # what it prints and opens depends on the load

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
    # In a subshell, which may report that it was aborted.
    (COIL_LIFETIME_FIRST=$at COIL_LIFETIME_LAST=$end timeout 600 "$binary" --gtest_filter="$filter" >"$output" 2>&1; exit $?) \
        2>/dev/null || status=$?
    if ((status == 0)); then
        passed=$((passed + end - at + 1))
        at=$((end + 1))
        continue
    fi
    # If the process printed nothing, the first seed of the chunk is assumed.
    seed=$(grep -o 'COIL_LIFETIME_SEED=[0-9]*' "$output" | tail -n 1 | cut -d= -f2)
    seed=${seed:-$at}
    reason=$(grep -m 1 -E 'did not end within|ERROR: [A-Z]|WARNING: Thread|runtime error|^coil: .*\.$|Failure$|Assertion' "$output")
    detail=$(grep -m 1 -A 4 'Failure$' "$output" | tail -n 4 | tr -s '\n ' ' ')
    echo "seed $seed: status $status: ${reason:-no reason given}${detail:+ ($detail)}"
    sed -n -e '/A program failed: /,/^state: /p' -e '/^replay: /,/^$/p' "$output" | head -n 200 | sed 's/^/    /'
    if [[ -n $logs ]]; then
        cp "$output" "$logs/seed_$seed.log"
    fi
    passed=$((passed + seed - at))
    failed=$((failed + 1))
    at=$((seed + 1))
done
echo "$passed passed, $failed failed"
((failed == 0))
