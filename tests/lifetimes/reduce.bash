#!/usr/bin/env bash
# reduce.bash BINARY SEED [TIMES]: leaves steps out of a failing program as long as it still fails, and prints the rest.
# A program fails if one of TIMES processes (5) does; in the simulator each has a different schedule. Respects the
# filters of programs_test.cpp.
set -uo pipefail

if (($# < 2)); then
    echo "usage: reduce.bash BINARY SEED [TIMES]" >&2
    exit 2
fi
binary=$1 seed=$2 times=${3:-5}
filter=${LIFETIME_FILTER:-RandomLifetimes.*}
output=$(mktemp)
trap 'rm -f "$output"' EXIT

fails() { # fails ONLY
    for ((n = 0; n < times; ++n)); do
        if ! (COIL_LIFETIME_PRINT=1 COIL_LIFETIME_SEED=$seed COIL_LIFETIME_WORLD=$n COIL_LIFETIME_ONLY=$1 \
            timeout 60 "$binary" --gtest_filter="$filter" \
            >"$output" 2>&1; exit $?) 2>/dev/null; then
            return 0
        fi
    done
    return 1
}
steps() { # prints the steps of the last program
    awk '/^A program failed/ { exit } $1 ~ /^#[0-9]+$/ { print substr($1, 2) }' "$output" | paste -sd,
}

kept=${COIL_LIFETIME_ONLY:-}
if ! fails "$kept"; then
    echo "seed $seed does not fail in $times processes" >&2
    exit 1
fi
kept=$(steps)
progress=1
while ((progress)); do
    progress=0
    for number in ${kept//,/ }; do
        case ",$kept," in
            *,"$number",*) ;;
            *) continue ;; # removed together with another step
        esac
        fewer=$(tr , '\n' <<<"$kept" | grep -vx "$number" | paste -sd,)
        if fails "${fewer:-0}"; then
            kept=$(steps)
            progress=1
        fi
    done
done
fails "$kept" || fails "$kept" || fails "$kept"
awk '/^A program failed|^   0\.|^The program/ { exit } /^COIL_LIFETIME_SEED/ { seen = 1 } seen' "$output"
grep -m 2 -E 'did not end within|locals were not|its handle does|^coil: sim|ERROR: |^coil: .*\.$' "$output"
echo "COIL_LIFETIME_WORLD=$n COIL_LIFETIME_SEED=$seed COIL_LIFETIME_ONLY=$kept"
