#!/bin/bash
# file_demo: its output matches the state of the directory, and hello() runs in between.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example file_demo

expect_status 2 "$examples/file_demo" a b
expect_said '^usage: file_demo '

expected='[AWAIT] Before: createDirectories
[AWAIT] After: createDirectories: true
[AWAIT] Before: exists1
[AWAIT] After: exists1: true
[AWAIT] Before: removeAll
[AWAIT] After: removeAll: 1
[AWAIT] Before: exists2
[AWAIT] After: exists2: false'
for again in 1 2; do # the second time all directories but the last exist already
    expect_status 0 "$examples/file_demo" "$tmp"
    [[ $(grep -v HELLO "$tmp/said") == "$expected" && $(head -n 1 "$tmp/said") == "[AWAIT] Before: createDirectories" &&
        $(grep -cx '<HELLO>' "$tmp/said") == 1 ]] || fail "run $again said: $(cat "$tmp/said")"
done
[[ -d $tmp/dir1/a/b && ! -e $tmp/dir1/a/b/c ]] || fail "left: $(find "$tmp/dir1")"

touch "$tmp/file"
expect_status 1 "$examples/file_demo" "$tmp/file"
grep -q '^file_demo: .*Not a directory' "$tmp/said" || fail "said: $(cat "$tmp/said")"
