#!/usr/bin/env bash
# reduce.bash BINARY SEED [TIMES]: leaves steps out of a program that fails for as long as it still does, and prints what is
# left. A program fails when one of TIMES processes (5) does. Honours COIL_LIFETIME_WITHOUT.
set -uo pipefail

if (($# < 2)); then
    echo "usage: reduce.bash BINARY SEED [TIMES]" >&2
    exit 2
fi
binary=$1 seed=$2 times=${3:-5}
filter=${LIFETIME_FILTER:-RandomLifetimes.*}
output=$(mktemp)
trap 'rm -f "$output"' EXIT

fails() { # fails DROPPED
    for ((n = 0; n < times; ++n)); do
        if ! (COIL_LIFETIME_PRINT=1 COIL_LIFETIME_SEED=$seed COIL_LIFETIME_DROP=$1 timeout 60 "$binary" --gtest_filter="$filter" \
            >"$output" 2>&1) 2>/dev/null; then
            return 0
        fi
    done
    return 1
}

dropped=0
if ! fails "$dropped"; then
    echo "seed $seed does not fail in $times processes" >&2
    exit 1
fi
progress=1
while ((progress)); do
    progress=0
    for number in $(sed -n '/^COIL_LIFETIME_SEED/,/^a t[ah]/s/^ *#\([0-9]*\) .*/\1/p' "$output" | sort -n -u); do
        if fails "$dropped,$number"; then
            dropped="$dropped,$number"
            progress=1
        fi
    done
    fails "$dropped" || true
done
for ((n = 0; n < 5; ++n)); do
    fails "$dropped" && break
done
sed -n '/^COIL_LIFETIME_SEED/,/^\[/p' "$output" | awk '/^COIL_LIFETIME_SEED/ && seen++ { exit } { print }'
grep -m 2 -E 'did not end within|Failure$|ERROR: ' "$output"
echo "COIL_LIFETIME_SEED=$seed COIL_LIFETIME_DROP=$dropped"
