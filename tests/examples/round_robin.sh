#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# round_robin: the order of turns, and their threads.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example round_robin

for arguments in "a" "=3" "a=" "a=-1" "a=x" "a=1 b"; do
    expect_status 2 "$examples/round_robin" $arguments
    expect_said '^usage: round_robin '
done

# The task waits for another thread and may be back before the round is over or long after the last one: its last two
# lines and the marks between rounds are checked separately.
lines() { grep -vE '^(-- after round [0-9]+|thread [0-9]+: task: (asks|is back))$' "$tmp/said"; }

expect_status 0 "$examples/round_robin"
want='thread 1: a: step 1 of 3
thread 1: b: step 1 of 1
thread 1: c: step 1 of 2
thread 1: task: begins
thread 1: a: step 2 of 3
thread 1: b: ends
thread 1: c: step 2 of 2
thread 1: a: step 3 of 3
thread 1: c: ends
thread 1: a: ends
all have ended'
[[ $(lines) == "$want" ]] || fail "another order: $(cat "$tmp/said")"
[[ $(grep -E 'task: (asks|is back)' "$tmp/said") == $'thread 2: task: asks\nthread 1: task: is back' ]] ||
    fail "the task was elsewhere: $(cat "$tmp/said")"
[[ $(sed -n 5p "$tmp/said") == '-- after round 1' ]] || fail "another first round: $(cat "$tmp/said")"

# A coroutine without steps ends in its first turn.
expect_status 0 "$examples/round_robin" x=0 y=1
[[ $(lines | head -n 2) == $'thread 1: x: ends\nthread 1: y: step 1 of 1' ]] || fail "x has no steps: $(cat "$tmp/said")"
