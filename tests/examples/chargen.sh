#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# chargen with netcat and nc: the text, its length, several clients at a time, and clients that disconnect.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need nc netcat-openbsd
need_example chargen
need_example netcat

for arguments in "" "nonsense" "65536" "-1" "1 2"; do
    expect_status 2 "$examples/chargen" $arguments
    expect_said '^usage: '
done

# The pattern, generated independently: 95 lines, repeated.
# shellcheck disable=SC2059
characters=$(printf "$(printf '\\%03o' {32..126})")
for ((line = 0; line < 95; line++)); do
    printf '%s\r\n' "${characters:line}${characters:0:line}" | cut -c 1-72,96-
done >"$tmp/lines"
sed -n 1p "$tmp/lines" | grep -qF '!"#$%&' || fail "the test's own pattern is wrong"

start chargen "$examples/chargen" 0
server=$pid
port=$(port_of "$tmp/chargen.out" "$server") || fail "chargen did not start: $(cat "$tmp/chargen.err")"
expect_status 1 "$examples/chargen" "$port"
expect_said "chargen: .*0.0.0.0:$port.*in use"

bytes=20000000
for client in "$examples/netcat" nc; do
    for ((i = 0; i < 2; i++)); do
        # The client ends when its reader closes the pipe.
        (timeout 8 "$client" 127.0.0.1 "$port" 2>/dev/null | head -c $bytes >"$tmp/got.$i") &
    done
    for ((i = 0; i < 2; i++)); do
        wait -n || fail "a client failed"
    done
done
[[ $(stat -c %s "$tmp/got.0") == "$bytes" ]] || fail "$(stat -c %s "$tmp/got.0") bytes came"
cmp "$tmp/got.0" <(while cat "$tmp/lines" "$tmp/lines" "$tmp/lines" "$tmp/lines"; do :; done 2>/dev/null | head -c $bytes) ||
    fail "the text is not the pattern"

kill -0 "$server" || fail "chargen died of its clients: $(cat "$tmp/chargen.err")"
is_silent chargen || fail "chargen complained: $(cat "$tmp/chargen.err")"
