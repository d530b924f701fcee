#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# tick: prints the requested number of lines, one per second, and uses no processor time in between.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example tick

for arguments in "soon" "-1" "1 2"; do
    expect_status 2 "$examples/tick" $arguments
    expect_said '^usage: '
done
expect_status 0 "$examples/tick" 0
[[ ! -s $tmp/said ]] || fail "tick 0 printed: $(cat "$tmp/said")"

start=${EPOCHREALTIME/[.,]/}
expect_status 0 "$examples/tick" 2
took=$((${EPOCHREALTIME/[.,]/} - start))
[[ $(cut -d' ' -f1,2 "$tmp/said") == $'tick 1\ntick 2' ]] || fail "tick 2 printed: $(cat "$tmp/said")"
((took >= 2000000 && took < 4000000)) || fail "tick 2 took $took microseconds"

# Without a number it runs forever; its CPU time in two seconds, including sanitizers and the start, is close to zero.
start endless "$examples/tick"
sleep 2.3
read -r user system < <(cut -d' ' -f14,15 "/proc/$pid/stat")
kill "$pid"
((user + system <= $(getconf CLK_TCK) / 5)) || fail "it used $((user + system)) clock ticks"
grep -q '^tick 2 ' "$tmp/endless.out" || fail "after two seconds: $(cat "$tmp/endless.out")"
