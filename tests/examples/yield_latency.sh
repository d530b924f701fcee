#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# yield_latency prints a plausible figure.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example yield_latency

for arguments in "0" "x" "1 0" "1 2 3"; do
    expect_status 2 "$examples/yield_latency" $arguments
    expect_said '^usage: '
done

for coroutines in 1 1000; do
    expect_status 0 "$examples/yield_latency" $coroutines 200000
    expect_said "^$coroutines coroutines, 200000 switches: [0-9]*\.[0-9]* ns per switch$"
    ns=$(sed 's/.*: \([0-9]*\)\..*/\1/' "$tmp/said")
    # A switch is a few instructions; sanitizers and a busy machine slow it down, but not a million times.
    ((ns < 100000)) || fail "$ns ns per switch"
    grep -q ': 0\.0*0 ns' "$tmp/said" && fail "no time at all: $(cat "$tmp/said")"
done
exit 0
