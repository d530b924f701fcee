#!/bin/bash
# redis_ping with redis-benchmark and nc: well-behaved clients, clients that half-close, reset or vanish, many at a time.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need redis-benchmark redis-tools
need nc netcat-openbsd
need python3 python3
need_example redis_ping

expect_status 2 "$examples/redis_ping"
expect_status 2 "$examples/redis_ping" nonsense
expect_status 2 "$examples/redis_ping" 65536
expect_status 2 "$examples/redis_ping" 0 --idle sometimes
expect_status 2 "$examples/redis_ping" 0 --contexts 0
expect_status 2 "$examples/redis_ping" 0 --contexts two
grep -q '^usage: ' "$tmp/said" || fail "no usage: $(cat "$tmp/said")"

for idle in park spin batch; do
    start server "$examples/redis_ping" 0 --idle $idle --stats
    server=$pid
    port=$(port_of "$tmp/server.out" "$server") || fail "the server did not start: $(cat "$tmp/server.err")"

    # A client that half-closes receives its answer and then the end.
    answer=$(printf 'PING\r\n' | timeout 5 nc -N 127.0.0.1 "$port") || fail "nc -N failed ($idle)"
    [[ $answer == $'+OK\r' ]] || fail "nc got '$answer' ($idle)"

    timeout 8 redis-benchmark -p "$port" -t ping_inline,ping_mbulk -c 50 -n 5000 -q >"$tmp/bench" 2>/dev/null ||
        fail "redis-benchmark failed ($idle)"
    [[ $(tr '\r' '\n' <"$tmp/bench" | grep -c 'requests per second') == 2 ]] ||
        fail "redis-benchmark said: $(cat "$tmp/bench")"

    kill -TERM "$server"
    ends "$server" || fail "the server ended with $? ($idle)"
    read -r requests _ enters _ < <(sed -n 's/,//; /requests/p' "$tmp/server.out")
    # One request by nc, two times 5000 by redis-benchmark, and its queries of settings before them.
    ((requests >= 10001 && requests <= 10020)) || fail "$requests requests counted ($idle)"
    ((enters > 0 && enters <= 2 * requests)) || fail "$enters system calls for $requests requests ($idle)"
done

start server "$examples/redis_ping" 0
server=$pid
port=$(port_of "$tmp/server.out" "$server") || fail "the server did not start"

expect_status 1 "$examples/redis_ping" "$port"
expect_said "0.0.0.0:$port.*in use"

# Resets, before and after the first request and with unread answers; then 500 connections that stay open.
timeout 8 python3 - "$port" <<'PYTHON' || fail "the clients failed"
import socket, struct, sys

port = int(sys.argv[1])
reset = struct.pack("ii", 1, 0)

def connect():
    return socket.create_connection(("127.0.0.1", port), timeout=5)

for i in range(200):
    client = connect()
    if i % 4 > 0:
        client.sendall(b"PING\r\n")
    if i % 4 > 1:
        assert client.recv(100) == b"+OK\r\n"
    if i % 4 > 2:
        client.sendall(b"PING\r\n" * 100)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    client.close()

clients = [connect() for _ in range(500)]
for round in range(3):
    for client in clients:
        client.sendall(b"PING\r\n")
    for client in clients:
        assert client.recv(100) == b"+OK\r\n", "wrong answer"
for client in clients[::2]:
    client.close()
for client in clients[1::2]:
    client.sendall(b"PING\r\n")
    assert client.recv(100) == b"+OK\r\n", "wrong answer"
PYTHON
kill -0 "$server" 2>/dev/null || fail "the server died: $(cat "$tmp/server.err")"
kill -INT "$server"
ends "$server" || fail "the server ended with $?"

# Fewer descriptors than clients: the others wait until descriptors are available again.
# shellcheck disable=SC2016
start server bash -c 'ulimit -n 40; exec "$0" 0' "$examples/redis_ping"
server=$pid
port=$(port_of "$tmp/server.out" "$server") || fail "the server did not start: $(cat "$tmp/server.err")"
timeout 8 python3 - "$port" <<'PYTHON' || fail "clients beyond the limit of descriptors failed"
import select, socket, sys

waiting = []
for _ in range(100):
    client = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5)
    client.sendall(b"PING\r\n")
    waiting.append(client)
most = 0
while waiting:
    answered, _, _ = select.select(waiting, [], [], 5)
    assert answered, f"{len(waiting)} clients without an answer"
    most = max(most, len(answered))
    for client in answered:
        assert client.recv(100) == b"+OK\r\n"
        client.close()
        waiting.remove(client)
assert most < 40, most
PYTHON
kill -TERM "$server"
ends "$server" || fail "the server ended with $?"

# Two contexts: both answer, the figures add up, and a signal ends the program while connections are open.
start server "$examples/redis_ping" 0 --contexts 2 --stats
server=$pid
port=$(port_of "$tmp/server.out" "$server") || fail "two contexts did not start: $(cat "$tmp/server.err")"
timeout 8 redis-benchmark -p "$port" -t ping_inline,ping_mbulk -c 50 -n 5000 -q >"$tmp/bench" 2>/dev/null ||
    fail "redis-benchmark failed with two contexts"
timeout 8 python3 - "$port" "$server" <<'PYTHON' || fail "clients of two contexts failed"
import os, signal, socket, sys

clients = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5) for _ in range(100)]
for client in clients:
    client.sendall(b"PING\r\n")
for client in clients:
    assert client.recv(100) == b"+OK\r\n", "wrong answer"
os.kill(int(sys.argv[2]), signal.SIGTERM)
for client in clients:
    try:
        assert client.recv(100) == b"", "an answer without a request"
    except ConnectionResetError:
        pass
PYTHON
ends "$server" || fail "two contexts ended with $?: $(cat "$tmp/server.err")"
is_silent server || fail "two contexts complained: $(cat "$tmp/server.err")"
mapfile -t lines < <(sed -n 's/,//; s/^context .: //; /requests/p' "$tmp/server.out")
[[ ${#lines[@]} == 3 ]] || fail "not three lines: $(cat "$tmp/server.out")"
read -r requests _ enters _ <<<"${lines[0]}"
read -r requests0 _ enters0 _ <<<"${lines[1]}"
read -r requests1 _ enters1 _ <<<"${lines[2]}"
((requests >= 10101 && requests <= 10120)) || fail "$requests requests counted on two contexts"
((requests0 > 0 && requests1 > 0)) || fail "one context did nothing: $(cat "$tmp/server.out")"
((requests0 + requests1 == requests && enters0 + enters1 == enters)) || fail "wrong sums: $(cat "$tmp/server.out")"
