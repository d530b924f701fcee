#!/bin/bash
# line_count prints what wc -l prints; a file that cannot be read ends it immediately.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example line_count

expect_status 2 "$examples/line_count"
expect_said '^usage: line_count FILE'

cd "$tmp" || exit 1
: >empty
printf 'no newline' >short
seq 100000 >many
head -c 3000000 /dev/urandom >binary
for files in "empty" "short" "many" "empty short many binary" "many many many"; do
    # shellcheck disable=SC2086 # a list
    "$examples/line_count" $files >ours || fail "line_count $files ended with $?"
    # shellcheck disable=SC2086
    wc -l $files | sed 's/^ *//' | cmp - ours || fail "line_count $files: $(<ours)"
done

# A hundred files.
files=()
for ((i = 0; i < 100; i++)); do
    seq "$((i * 37))" >"file $i"
    files+=("file $i")
done
wc -l "${files[@]}" | sed 's/^ *//' >theirs
"$examples/line_count" "${files[@]}" | cmp - theirs || fail "a hundred files"

# More files than may be open.
(ulimit -n 90 && "$examples/line_count" "${files[@]}" "${files[@]}" >ours) || fail "two hundred files with ninety descriptors"

# Another child waits for input that never comes: it is cancelled.
mkfifo silent
exec 7<>silent
start failing "$examples/line_count" silent many missing silent
ends "$pid"
[[ $? == 1 ]] || fail "a missing file was not reported"
[[ ! -s failing.out ]] || fail "it printed: $(<failing.out)"
[[ $(complaints failing.err) == 'line_count: missing: No such file or directory' ]] || fail "it said: $(<failing.err)"
