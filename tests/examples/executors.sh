#!/bin/bash
# executors: each task prints its lines in order and from its own thread.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example executors

for arguments in "--slow" "1" ""; do
    expect_status 2 "$examples/executors" "$arguments"
    expect_said '^usage: executors '
done

expect_status 0 "$examples/executors" --quick
mapfile -t threads < <(cut -d' ' -f1 "$tmp/said")
expected=(main "task 1 starts" "task 2 starts" "task 2 returns" "task 1 has 2 of task 2" "task 3 starts"
    "task 3 returns" "task 1 has 3 of task 3" "task 1 ends: 6" "get: 6")
diff <(cut -d' ' -f2- "$tmp/said") <(printf '%s\n' "${expected[@]}") || fail "another order: $(cat "$tmp/said")"

# same A B, differ A B: compare the threads of two lines.
same() { [[ ${threads[$1]} == "${threads[$2]}" ]] || fail "lines $1 and $2 differ: $(cat "$tmp/said")"; }
differ() { [[ ${threads[$1]} != "${threads[$2]}" ]] || fail "lines $1 and $2 are of one thread: $(cat "$tmp/said")"; }

same 0 9 # main
same 1 4 # the looper
same 1 7
same 1 8
same 2 3
same 5 6
differ 0 1
differ 1 2
differ 1 5
differ 0 2
differ 0 5
