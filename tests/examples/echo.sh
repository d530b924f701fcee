#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# echo in both designs: all data comes back, even to many clients at a time; the distribution of connections; a signal
# ends it immediately.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need nc netcat-openbsd
need python3 python3
need_example echo

for arguments in "" "nonsense" "65536" "-1" "1 2" "--help" "0 --contexts 0" "0 --contexts x" "0 --acceptors two" \
    "0 --dispatch random"; do
    expect_status 2 "$examples/echo" $arguments
    expect_said '^usage: echo PORT '
done
head -c 8000000 /dev/urandom >"$tmp/file"

# echo_starts ARGUMENT...: sets $server and $port.
echo_starts() {
    start echo "$examples/echo" 0 --stats "$@"
    server=$pid
    port=$(port_of "$tmp/echo.out" "$server") || fail "echo $* did not start: $(cat "$tmp/echo.err")"
}

# echo_ends CONTEXTS: checks that it ends without errors; sets $sessions to the number of sessions that each context has run.
echo_ends() {
    ends "$server" || fail "echo ended with $?: $(cat "$tmp/echo.err")"
    is_silent echo || fail "echo complained: $(cat "$tmp/echo.err")"
    mapfile -t sessions < <(sed -n 's/^context [0-9]*: \([0-9]*\) sessions, [1-9][0-9]* turns, [1-9].*/\1/p' "$tmp/echo.out")
    [[ ${#sessions[@]} == "$1" ]] || fail "not $1 contexts: $(cat "$tmp/echo.out")"
}

for shape in "--contexts 1" "--contexts 2" "--contexts 3 --acceptors each" "--contexts 2 --acceptors one" \
    "--contexts 3 --acceptors one --dispatch least-loaded"; do
    echo_starts $shape

    # A client that half-closes receives its whole answer and then the end.
    answer=$(printf 'one\ntwo' | timeout 5 nc -N 127.0.0.1 "$port") || fail "nc failed ($shape)"
    [[ $answer == $'one\ntwo' ]] || fail "nc got '$answer' ($shape)"
    timeout 8 nc -N 127.0.0.1 "$port" </dev/null >"$tmp/nothing" || fail "nc without input failed ($shape)"
    [[ ! -s $tmp/nothing ]] || fail "an answer without a request ($shape)"

    # Large transfers, several at a time.
    clients=()
    for i in 1 2 3; do
        timeout 8 nc -N 127.0.0.1 "$port" <"$tmp/file" >"$tmp/back.$i" &
        clients+=($!)
    done
    for i in 1 2 3; do
        wait "${clients[i - 1]}" || fail "client $i failed ($shape)"
        cmp "$tmp/file" "$tmp/back.$i" || fail "client $i got something else ($shape)"
    done

    # Many clients in turn, some of which reset; then the end while others are open: idle, in the middle of an exchange,
    # and one that sends without reading, so that the server waits to send.
    timeout 8 python3 - "$port" "$server" <<'PYTHON' || fail "the clients failed ($shape)"
import os, signal, socket, struct, sys, time

def connect():
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5)

clients = [connect() for _ in range(100)]
for round in range(5):
    for number, client in enumerate(clients):
        client.sendall(f"{number} {round};".encode())
    for number, client in enumerate(clients):
        wanted = f"{number} {round};".encode()
        assert client.recv(len(wanted), socket.MSG_WAITALL) == wanted, "another client's answer"
for client in clients[::3]:
    client.sendall(b"x" * 1000)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
deaf = connect()
deaf.settimeout(0.5)
try:
    while True:
        deaf.send(b"x" * 100000)
except TimeoutError:
    pass
started = time.monotonic()
os.kill(int(sys.argv[2]), signal.SIGTERM)
for client in clients[1::3]:
    try:
        assert client.recv(100) == b"", "an answer without a request"
    except ConnectionResetError:
        pass
assert time.monotonic() - started < 2, "it took long to end"
PYTHON
    echo_ends "$(cut -d' ' -f2 <<<"$shape")"
    for number in "${sessions[@]}"; do
        ((number > 10)) || fail "a context had next to nothing to do ($shape): ${sessions[*]}"
    done
done

# The distribution of connections by a single acceptor. Context 0 has two tasks already: the acceptor and the one that
# waits for signals. Round robin gives it as many sessions as the other; by load it gets two fewer.
for rule in round-robin least-loaded; do
    echo_starts --contexts 2 --acceptors one --dispatch $rule
    timeout 8 python3 - "$port" "$server" <<'PYTHON' || fail "clients failed ($rule)"
import os, signal, socket, sys

clients = []
for _ in range(20):
    clients.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5))
    clients[-1].sendall(b"!")
    assert clients[-1].recv(1) == b"!"
os.kill(int(sys.argv[2]), signal.SIGINT)
PYTHON
    echo_ends 2
    [[ $rule == round-robin && ${sessions[*]} == "10 10" || $rule == least-loaded && ${sessions[*]} == "9 11" ]] ||
        fail "$rule: ${sessions[*]} sessions"
done

# A port in use.
echo_starts --acceptors one
expect_status 1 "$examples/echo" "$port" --acceptors one
expect_said "echo: .*0.0.0.0:$port.*in use"
kill -TERM "$server"
ends "$server" || fail "echo ended with $?"
