#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# downloads: neither the concurrency limit nor the rate limit is exceeded.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example downloads

for arguments in "0" "-1" "many" "1 2" "--at-once" "--at-once 0" "--per-second x"; do
    expect_status 2 "$examples/downloads" $arguments
    expect_said '^usage: downloads '
done

# runs COUNT AT_ONCE PER_SECOND LEAST_MS
runs() {
    expect_status 0 "$examples/downloads" "$1" --at-once "$2" --per-second "$3"
    expect_said "^$1 downloads, at most [0-9]* at once, in [0-9]* ms\$"
    read -r _ _ _ _ most _ _ _ took _ <"$tmp/said"
    ((most >= 1 && most <= $2)) || fail "$most at once: $(cat "$tmp/said")"
    ((took >= $4)) || fail "faster than allowed: $(cat "$tmp/said")"
}
runs 1 1 1 10
runs 5 1 1000 50 # one after the other, at least 10 ms each
runs 40 3 10000 130
[[ $most == 3 ]] || fail "only $most at once"
runs 31 100 100 300 # the 31st permit is released after 300 ms
