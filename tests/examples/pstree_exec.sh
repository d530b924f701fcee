#!/bin/bash
# pstree_exec: a process per request, its output and how it ended, its limits, and that no process is left.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3
need_example pstree_exec
program=$examples/pstree_exec

for arguments in "" "9000" "soon cat" "--limit 9000 cat" "--other 1 0 cat" "--processes 0 0 cat"; do
    # shellcheck disable=SC2086 # a list of arguments
    expect_status 2 "$program" $arguments
    grep -q '^usage: ' "$tmp/said" || fail "no usage for '$arguments'"
done

# asks REQUESTS EXPECTED [CLIENTS]: each client sends the requests, then ends its side, and must be answered that.
asks() {
    timeout 50 python3 - "$port" "$@" <<'PYTHON' || fail "$name: $(cat "$tmp/$name.err")"
import socket, sys
port, requests, expected, clients = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4] if len(sys.argv) > 4 else 1)
peers = [socket.create_connection(("127.0.0.1", port)) for _ in range(clients)]
for peer in peers:
    peer.settimeout(40)
    peer.sendall(requests.encode())
    peer.shutdown(socket.SHUT_WR)
for peer in peers:
    answer = b""
    while piece := peer.recv(65536):
        answer += piece
    assert answer == expected.encode(), answer
PYTHON
}

# runs PID: whether the process exists and has not ended; its new parent may not have reaped it.
runs() { [[ -e /proc/$1 && $(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) != @(Z|) ]]; }

# Requests of one client are answered in their order; arguments that look like options are the command's.
# shellcheck disable=SC2016 # $line and $1 are those of the command
serves echo "$program" 0 sh -c 'read -r line; echo "$1 $line"; echo "to stderr" >&2; exit 3' sh --limit
asks $'one\ntwo\n' $'22 bytes, exit code 3\n--limit one\nto stderr\n22 bytes, exit code 3\n--limit two\nto stderr\n'
asks '' ''
asks 'without a newline' $'36 bytes, exit code 3\n--limit without a newline\nto stderr\n'
stops_within 30

# More clients than processes at a time. Each process takes a lock that its end releases: two at a time would fail.
serves one_by_one "$program" --processes 1 0 sh -c "mkdir '$tmp/lock' && cat && rmdir '$tmp/lock'"
asks $'a\nb\n' $'2 bytes, exit code 0\na\n2 bytes, exit code 0\nb\n' 20
stops_within 30

# A command that reads nothing, one that is killed.
serves reads_nothing "$program" 0 true
asks $'x\ny\n' $'0 bytes, exit code 0\n0 bytes, exit code 0\n'
stops_within 30
# shellcheck disable=SC2016 # $$ is that of the command
serves killed "$program" 0 sh -c 'kill -9 $$'
asks $'x\n' $'0 bytes, killed by signal 9 (Killed)\n'
stops_within 30

# Limits. A terminated process takes what it has started with it: nothing holds the lock afterwards.
# shellcheck disable=SC2016 # $1 is that of the command
serves too_long "$program" --limit 300 0 sh -c 'sleep 100 & echo $! >"$1"; wait' sh "$tmp/child"
asks $'x\n' $'0 bytes, terminated: it ran for too long\n'
if [[ -s $tmp/child ]]; then # on a slow machine the limit may pass before it is written
    for ((try = 0; try < 2000; try++)); do
        runs "$(<"$tmp/child")" || break
        sleep 0.01
    done
    runs "$(<"$tmp/child")" && fail "a process is left"
fi
stops_within 30
serves too_much "$program" --output 1000 0 sh -c 'while :; do echo text; done'
asks $'x\n' $'0 bytes, terminated: it printed too much\n'
stops_within 30

# A command that does not exist, and a request that is too long, end their client alone.
serves missing "$program" 0 no-such-command-anywhere
asks $'x\n' ''
grep -q '^pstree_exec: .*no-such-command-anywhere' "$tmp/missing.err" || fail "it said: $(cat "$tmp/missing.err")"
asks "$(printf '%5000d' 0)" ''
asks '' ''
kill -TERM "$pid"
ends "$pid" || fail "it ended with $?"

# A stop ends clients whose process runs: after the grace period they are cancelled, and so is the process.
# shellcheck disable=SC2016 # $$ is that of the command
serves stopped "$program" --limit 100000 0 sh -c 'echo $$ >"$1"; exec sleep 100' sh "$tmp/sleeper"
asks_forever() { timeout 50 python3 -c '
import socket, sys
peer = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
peer.sendall(b"x\n")
while peer.recv(1000): pass' "$port" 2>/dev/null; }
asks_forever &
client=$!
for ((try = 0; try < 2000; try++)); do
    [[ -s $tmp/sleeper ]] && break
    sleep 0.01
done
[[ -s $tmp/sleeper ]] || fail "the command did not start"
kill -TERM "$pid"
for ((try = 0; try < 4000; try++)); do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.01
done
wait "$pid" || fail "it ended with $?: $(cat "$tmp/stopped.err")"
runs "$(<"$tmp/sleeper")" && fail "the process outlives its server"
wait "$client"
exit 0
