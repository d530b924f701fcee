#!/bin/bash
# netcat -u: datagrams in both directions, with itself and with another program; -w; errors.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3
need_example netcat
netcat=$examples/netcat

for options in -k "-U x" "--tls x" "-e true x"; do
    # shellcheck disable=SC2086 # lists of options are split on purpose
    expect_status 2 "$netcat" -u $options 1
    grep -q '^usage: ' "$tmp/said" || fail "no usage for '-u $options': $(cat "$tmp/said")"
done

# lines_in FILE TEXT: waits until the file is TEXT.
lines_in() {
    local try
    for ((try = 0; try < 500; try++)); do
        [[ $(cat "$1") == "$2" ]] && return
        sleep 0.01
    done
    fail "$1 is '$(cat "$1")', not '$2'"
}

# Each of the two sends what is written to its pipe.
mkfifo "$tmp/there" "$tmp/here"
"$netcat" -u -l 127.0.0.1 0 <"$tmp/there" >"$tmp/there.out" 2>"$tmp/there.err" &
listener=$!
exec 3>"$tmp/there"
port=$(port_of "$tmp/there.err" "$listener") || fail "netcat -u -l did not start: $(cat "$tmp/there.err")"
"$netcat" -u -w 2 127.0.0.1 "$port" <"$tmp/here" >"$tmp/here.out" 2>"$tmp/here.err" &
client=$!
exec 4>"$tmp/here"
printf 'question\n' >&4
lines_in "$tmp/there.out" question
printf 'answer\n' >&3
lines_in "$tmp/here.out" answer
printf 'more\n' >&4
lines_in "$tmp/there.out" $'question\nmore'

# A datagram of another sender is ignored.
timeout 8 python3 - "$port" <<'PYTHON' || fail "the other sender failed"
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"stranger", ("127.0.0.1", int(sys.argv[1])))
PYTHON
printf 'last\n' >&4
lines_in "$tmp/there.out" $'question\nmore\nlast'
exec 4>&- # the end of the input: answers are still received
printf 'late answer\n' >&3
lines_in "$tmp/here.out" $'answer\nlate answer'
ends "$client" || fail "netcat -u -w ended with $?: $(cat "$tmp/here.err")" # after two seconds
kill "$listener"
exec 3>&-

# One read of the input is one datagram, none is truncated, and an empty one ends nothing.
timeout 20 python3 - "$netcat" <<'PYTHON' || fail "the datagrams differ"
import os, socket, subprocess, sys, time

s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
s.settimeout(10)
netcat = subprocess.Popen([sys.argv[1], "-u", "-w", "1", "127.0.0.1", str(s.getsockname()[1])],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for size in (1, 1400, 16384):
    netcat.stdin.write(b"x" * size)
    netcat.stdin.flush()
    data, peer = s.recvfrom(65536)
    assert len(data) == size, (len(data), size)
large = os.urandom(60000)
s.sendto(b"", peer)
s.sendto(large, peer)
out, _ = netcat.communicate()
assert out == large, len(out)
assert netcat.returncode == 0, netcat.returncode
PYTHON

# Nothing listens: the kernel reports it on the connected socket.
printf 'x\n' | timeout 8 "$netcat" -u -w 5 127.0.0.1 "$(free_port)" >/dev/null 2>"$tmp/said" && fail "a closed port gave no error"
grep -q 'Connection refused' "$tmp/said" || fail "said: $(cat "$tmp/said")"
exit 0
