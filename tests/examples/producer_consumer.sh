#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# producer_consumer: every number is received once, for any capacity.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example producer_consumer

for arguments in "-1" "many" "1 2 3" "1 x"; do
    expect_status 2 "$examples/producer_consumer" $arguments
    expect_said '^usage: producer_consumer '
done
for room in 0 1 5 1000; do
    for numbers in 0 1 2000; do
        expect_status 0 "$examples/producer_consumer" $numbers $room
        all=$((4 * numbers))
        grep -qx "$all numbers in total, their sum is $((all * (all - 1) / 2))" "$tmp/said" ||
            fail "$numbers numbers through room for $room: $(cat "$tmp/said")"
        [[ $(grep -c '^a consumer took [0-9]*$' "$tmp/said") == 3 ]] || fail "not three consumers: $(cat "$tmp/said")"
    done
done
expect_status 0 "$examples/producer_consumer"
grep -qx '40000 numbers in total, their sum is 799980000' "$tmp/said" || fail "by default: $(cat "$tmp/said")"
