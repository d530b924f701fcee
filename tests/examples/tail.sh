#!/bin/bash
# tail: existing lines, appended lines, and a file that replaces the first.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example tail

# has LINES: the output is exactly these lines, soon.
has() {
    local try
    for ((try = 0; try < 500; try++)); do
        [[ -e $tmp/tail.out && $(<"$tmp/tail.out") == "$1" ]] && return
        sleep 0.01
    done
    fail "expected '$1', got '$(<"$tmp/tail.out")'; $(cat "$tmp/tail.err")"
}

expect_status 2 "$examples/tail"
expect_status 1 "$examples/tail" "$tmp/no/such/folder/file"

mkdir "$tmp/logs"
echo one >"$tmp/logs/log"
start tail "$examples/tail" "$tmp/logs/log"
has one
echo two >>"$tmp/logs/log"
has $'one\ntwo'
echo noise >"$tmp/logs/other"
mv "$tmp/logs/log" "$tmp/logs/log.1"
echo three >"$tmp/logs/new"
mv "$tmp/logs/new" "$tmp/logs/log"
has $'one\ntwo\nthree'
echo four >>"$tmp/logs/log"
has $'one\ntwo\nthree\nfour'
exit 0
