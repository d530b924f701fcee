#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# graceful: on a signal it accepts no more connections, waits for the existing ones, and says goodbye to the rest.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3
need_example graceful

for arguments in "" "nonsense" "65536" "-1" "1 2" "--help" "0 --grace x" "0 --grace -1"; do
    expect_status 2 "$examples/graceful" $arguments
    expect_said '^usage: graceful PORT '
done

# graceful_starts ARGUMENT...: sets $server and $port.
graceful_starts() {
    start graceful "$examples/graceful" 0 "$@"
    server=$pid
    port=$(port_of "$tmp/graceful.out" "$server") || fail "graceful $* did not start: $(cat "$tmp/graceful.err")"
}

# graceful_ends SENTENCE SESSIONS
graceful_ends() {
    ends "$server" || fail "graceful ended with $?: $(cat "$tmp/graceful.err")"
    is_silent graceful || fail "graceful complained: $(cat "$tmp/graceful.err")"
    # shellcheck disable=SC2053 # a pattern
    [[ $(tail -n 2 "$tmp/graceful.out") == stopping:\ $2\ sessions$'\n'"$1" ]] || fail "graceful said: $(cat "$tmp/graceful.out")"
}

for signal in INT TERM; do
    # No clients.
    graceful_starts
    kill -"$signal" "$server"
    graceful_ends "all have ended" 0

    # Clients that finish after the signal are served to the end; a new one is refused.
    graceful_starts --grace 8
    timeout 8 python3 - "$port" "$server" "$signal" <<'PYTHON' || fail "the clients failed ($signal)"
import os, signal, socket, sys, time

def connect():
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5)

clients = [connect() for _ in range(3)]
for client in clients:
    client.sendall(b"hello")
    assert client.recv(5, socket.MSG_WAITALL) == b"hello"
os.kill(int(sys.argv[2]), getattr(signal, "SIG" + sys.argv[3]))
deadline = time.monotonic() + 5
while time.monotonic() < deadline:
    try:
        connect().close()
    except ConnectionRefusedError:
        break
    except ConnectionResetError:
        pass  # it was in the accept queue when the listener closed
    time.sleep(0.01)
else:
    raise AssertionError("it still takes connections")
for client in clients:
    client.sendall(b"again")
    assert client.recv(5, socket.MSG_WAITALL) == b"again", "not served any more"
    client.shutdown(socket.SHUT_WR)
    assert client.recv(100) == b"", "more than was sent"
PYTHON
    graceful_ends "all have ended" "[3-9]*"
done

# Remaining clients get a goodbye when the time is up.
graceful_starts --grace 0.3
timeout 8 python3 - "$port" "$server" <<'PYTHON' || fail "the clients failed"
import os, signal, socket, sys, time

clients = [socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5) for _ in range(2)]
for client in clients:
    client.sendall(b"hello")
    assert client.recv(5, socket.MSG_WAITALL) == b"hello"
os.kill(int(sys.argv[2]), signal.SIGTERM)
start = time.monotonic()
for client in clients:
    assert client.recv(100) == b"goodbye\n", "no goodbye"
    assert client.recv(100) == b""
assert 0.2 < time.monotonic() - start < 4
PYTHON
graceful_ends "some were ended" 2

# Without free descriptors it serves its clients, and accepts the next ones when descriptors are available again.
# shellcheck disable=SC2016 # the inner bash expands $0 and $@
start graceful bash -c 'ulimit -n 24 && exec "$0" "$@"' "$examples/graceful" 0 --grace 8
server=$pid
port=$(port_of "$tmp/graceful.out" "$server") || fail "graceful did not start: $(cat "$tmp/graceful.err")"
timeout 8 python3 - "$port" "$server" <<'PYTHON' || fail "the clients failed: $(cat "$tmp/graceful.err")"
import os, signal, socket, sys, time

def connect():
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5)

crowd = [connect() for _ in range(40)]
crowd[0].sendall(b"hello")
assert crowd[0].recv(5, socket.MSG_WAITALL) == b"hello"
time.sleep(0.2)
crowd[0].sendall(b"again")
assert crowd[0].recv(5, socket.MSG_WAITALL) == b"again"
for client in crowd:
    client.close()
late = connect()
late.sendall(b"hello")
assert late.recv(5, socket.MSG_WAITALL) == b"hello", "it takes no more connections"
late.close()
os.kill(int(sys.argv[2]), signal.SIGTERM)
PYTHON
ends "$server" || fail "graceful ended with $?: $(cat "$tmp/graceful.err")"
is_silent graceful || fail "graceful complained: $(cat "$tmp/graceful.err")"
