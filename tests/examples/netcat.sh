#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# netcat with nc and with itself: both directions, half-close, every kind of output, -w, errors.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need nc netcat-openbsd
need python3 python3
need_example netcat
netcat=$examples/netcat

head -c 8000003 /dev/urandom >"$tmp/file"
head -c 3000001 /dev/urandom >"$tmp/reply"

# netcat_listens NAME INPUT OUTPUT [OPTION...]: starts netcat -l; sets $pid and $port.
netcat_listens() {
    rm -f "$tmp/$1.err"
    "$netcat" "${@:4}" -l 127.0.0.1 0 <"$2" >"$3" 2>"$tmp/$1.err" &
    pid=$!
    port=$(port_of "$tmp/$1.err" "$pid") || fail "netcat -l did not start: $(cat "$tmp/$1.err")"
}

# nc_listens COMMAND...: runs the command with a free port in place of PORT; sets $pid and $port. (nc -l exits as soon
# as its peer has ended, even if it has more to send. So it only receives here.)
nc_listens() {
    port=$(free_port)
    "${@/PORT/$port}" >"$tmp/there.out" 2>"$tmp/there.err" &
    pid=$!
    is_up "$port" || fail "nc does not listen: $(cat "$tmp/there.err")"
}

# same FILE FILE
same() { cmp "$1" "$2" || fail "$1 differs from $2"; }

# Usage.
for arguments in "" "-x 1 2" "-w soon 127.0.0.1 1" "-w 0 127.0.0.1 1" "localhost" "-l 1 2 3" "-U" "-U a b" "-k 127.0.0.1 1" "-e"; do
    expect_status 2 "$netcat" $arguments
    grep -q '^usage: ' "$tmp/said" || fail "no usage for '$arguments': $(cat "$tmp/said")"
done

# A file from nc, a file to nc, and both simultaneously: each side shuts down its sending side at the end of its data.
netcat_listens here /dev/null "$tmp/here.out"
timeout 8 nc -N 127.0.0.1 "$port" <"$tmp/file" >/dev/null || fail "nc could not send"
ends "$pid" || fail "netcat -l ended with $?: $(cat "$tmp/here.err")"
same "$tmp/here.out" "$tmp/file"

nc_listens nc -l 127.0.0.1 PORT
timeout 8 "$netcat" localhost "$port" <"$tmp/file" >"$tmp/back.out" || fail "netcat ended with $?"
ends "$pid"
same "$tmp/there.out" "$tmp/file"
same "$tmp/back.out" /dev/null

netcat_listens here "$tmp/reply" "$tmp/here.out"
timeout 8 nc -N 127.0.0.1 "$port" <"$tmp/file" >"$tmp/back.out" || fail "nc could not send"
ends "$pid" || fail "netcat -l ended with $?: $(cat "$tmp/here.err")"
same "$tmp/here.out" "$tmp/file"
same "$tmp/back.out" "$tmp/reply"

# netcat on both sides. One of them reads and writes pipes, and so splices; a slow reader slows down the whole chain.
netcat_listens here "$tmp/reply" "$tmp/here.out"
# shellcheck disable=SC2002 # the input must be a pipe
cat "$tmp/file" | timeout 8 "$netcat" 127.0.0.1 "$port" | (sleep 0.3; cat) >"$tmp/back.out"
[[ ${PIPESTATUS[1]} == 0 ]] || fail "netcat between pipes failed"
ends "$pid" || fail "netcat -l ended with $?: $(cat "$tmp/here.err")"
same "$tmp/here.out" "$tmp/file"
same "$tmp/back.out" "$tmp/reply"

# Half-close: the peer has sent everything and is answered afterwards.
port=$(free_port)
(sleep 0.5; printf 'late answer') | timeout 8 "$netcat" -l 127.0.0.1 "$port" >"$tmp/here.out" 2>"$tmp/here.err" &
listener=$!
is_up "$port" || fail "netcat -l does not listen"
answer=$(printf 'question' | timeout 8 nc -N 127.0.0.1 "$port")
ends "$listener" || fail "netcat -l ended with $?: $(cat "$tmp/here.err")"
[[ $answer == 'late answer' && $(<"$tmp/here.out") == question ]] || fail "half-close: '$answer', '$(<"$tmp/here.out")'"

# A Unix socket: both ends, and the file is gone afterwards.
"$netcat" -l -U "$tmp/socket" <"$tmp/reply" >"$tmp/here.out" 2>"$tmp/here.err" &
listener=$!
for ((try = 0; try < 500; try++)); do
    grep -qs '^listening on unix:' "$tmp/here.err" && break
    sleep 0.01
done
timeout 8 "$netcat" -U "$tmp/socket" <"$tmp/file" >"$tmp/back.out" || fail "netcat -U ended with $?"
ends "$listener" || fail "netcat -l -U ended with $?: $(cat "$tmp/here.err")"
same "$tmp/here.out" "$tmp/file"
same "$tmp/back.out" "$tmp/reply"
[[ ! -e $tmp/socket ]] || fail "netcat -l -U left its socket"
expect_status 1 "$netcat" -U "$tmp/socket"
expect_said 'netcat: cannot connect to .*socket: No such file or directory'

# -k: one connection after the other, also after one that fails.
netcat_listens here /dev/null "$tmp/here.out" -k
timeout 50 "$netcat" 127.0.0.1 "$port" <"$tmp/file" >/dev/null || fail "the first client ended with $?"
timeout 50 python3 - "$port" <<'PYTHON' || fail "a reset connection ended netcat -l -k"
import socket, struct, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as peer:
    peer.recv(1) # its input is empty: the connection was accepted
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
PYTHON
timeout 50 "$netcat" 127.0.0.1 "$port" <"$tmp/reply" >/dev/null || fail "the third client ended with $?"
kill -0 "$pid" || fail "netcat -l -k ended: $(cat "$tmp/here.err")"
for ((try = 0; try < 2000; try++)); do # the last client has sent everything; netcat writes it in its own time
    (($(stat -c %s "$tmp/here.out") < 11000004)) || break
    sleep 0.01
done
kill "$pid"
wait "$pid"
cmp "$tmp/here.out" <(cat "$tmp/file" "$tmp/reply") || fail "netcat -l -k received something else"

# -e: a command on either side; it sees the end of what the other side sends.
netcat_listens here /dev/null /dev/null -k -e 'wc -c; exit 3'
for input in file reply; do
    counted=$(timeout 50 "$netcat" 127.0.0.1 "$port" <"$tmp/$input") || fail "the client of -e ended with $?"
    [[ $counted -eq $(wc -c <"$tmp/$input") ]] || fail "the command said '$counted'"
done
kill "$pid"
wait "$pid"
netcat_listens here /dev/null "$tmp/here.out"
timeout 50 "$netcat" -e "cat '$tmp/reply'" 127.0.0.1 "$port" || fail "netcat -e ended with $?"
ends "$pid" || fail "netcat -l ended with $?: $(cat "$tmp/here.err")"
same "$tmp/here.out" "$tmp/reply"

# Outputs that splice(2) cannot write to: a file opened for appending, a terminal.
printf 'before' >"$tmp/log"
netcat_listens there "$tmp/file" /dev/null
timeout 8 "$netcat" 127.0.0.1 "$port" </dev/null >>"$tmp/log" || fail "appending failed"
ends "$pid"
cmp "$tmp/log" <(printf before; cat "$tmp/file") || fail "what was appended differs"

if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    head -c 300000 /dev/zero | tr '\0' 'x' >"$tmp/text"
    netcat_listens there "$tmp/text" /dev/null
    timeout 8 script -qec "stty -onlcr; '$netcat' 127.0.0.1 $port </dev/null 2>$tmp/tty.err" /dev/null </dev/null >"$tmp/back.out" ||
        fail "netcat on a terminal failed: $(cat "$tmp/tty.err")"
    ends "$pid"
    same "$tmp/back.out" "$tmp/text"

    # On a terminal, netcat ends when its peer has ended, even if its input has not.
    sleep 4 | script -qec "'$netcat' -l 127.0.0.1 0 2>'$tmp/tty.err'" /dev/null >/dev/null &
    script=$!
    port=$(port_of "$tmp/tty.err" "$script") || fail "netcat -l did not start on a terminal"
    printf 'hello' | timeout 3 nc -N 127.0.0.1 "$port" >/dev/null || fail "netcat on a terminal did not end"
fi

# -w 1: after a second netcat gives up on a silent peer, and on an attempt to connect that is not answered, but not on a
# slow peer. The three tests run at the same time.
silent_peer() {
    nc_listens timeout 8 nc -d -l 127.0.0.1 PORT
    local start=${EPOCHREALTIME/[.,]/} took
    timeout 8 "$netcat" -w 1 127.0.0.1 "$port" < <(sleep 3) >/dev/null || fail "-w ended with $?"
    took=$((${EPOCHREALTIME/[.,]/} - start))
    ((took >= 1000000 && took < 2800000)) || fail "-w 1 took $took microseconds"
}

slow_peer() {
    port=$(free_port)
    (for i in 1 2 3 4; do sleep 0.4; echo $i; done) | timeout 8 nc -N -l 127.0.0.1 "$port" >/dev/null &
    is_up "$port" || fail "nc does not listen"
    [[ $(timeout 8 "$netcat" -w 1 127.0.0.1 "$port" < <(sleep 1.8)) == $'1\n2\n3\n4' ]] || fail "-w gave up on a slow peer"
}

unanswered() {
    timeout 8 python3 - "$netcat" <<'PYTHON' || fail "-w does not limit connecting"
import socket, subprocess, sys

listener = socket.create_server(("127.0.0.1", 0), backlog=0)
full = [socket.socket() for _ in range(4)]
for client in full:
    client.setblocking(False)
    client.connect_ex(listener.getsockname())
port = str(listener.getsockname()[1])
netcat = subprocess.run([sys.argv[1], "-w", "1", "127.0.0.1", port], stdin=subprocess.DEVNULL,
                        stderr=subprocess.PIPE, text=True)
assert netcat.returncode == 1, netcat
assert netcat.stderr.splitlines(True)[-1:] == [f"netcat: cannot connect to 127.0.0.1 port {port}: Connection timed out\n"], netcat
PYTHON
}

silent_peer &
waiting=($!)
slow_peer &
waiting+=($!)
unanswered &
waiting+=($!)
for test in "${waiting[@]}"; do
    wait "$test" || exit 1
done

# A connection that is reset in the middle of a transfer.
timeout 8 python3 - "$netcat" "$tmp/file" <<'PYTHON' || fail "a reset connection is not reported"
import socket, struct, subprocess, sys

listener = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[2]) as file:
    netcat = subprocess.Popen([sys.argv[1], "127.0.0.1", str(listener.getsockname()[1])], stdin=file,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
peer, _ = listener.accept()
peer.recv(1000)
peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
peer.close()
said = netcat.communicate(timeout=5)[1]
assert netcat.returncode == 1, netcat.returncode
assert said.splitlines(True)[-1] in ("netcat: connection: Connection reset by peer\n", "netcat: connection: Broken pipe\n"), said
PYTHON

# Errors are reported on one line.
expect_status 1 "$netcat" 127.0.0.1 "$(free_port)"
expect_said 'netcat: cannot connect to 127.0.0.1 port .*: Connection refused'
expect_status 1 "$netcat" no-such-host.invalid 80
expect_said 'netcat: .*no-such-host.invalid'
expect_status 1 "$netcat" 300.1.1.1 80
expect_said 'netcat: .*300.1.1.1'
expect_status 1 "$netcat" '' 80
expect_said 'netcat: .*""'
expect_status 1 "$netcat" 127.0.0.1 70000
expect_said 'netcat: .*70000'
expect_status 1 "$netcat" -l 192.0.2.1 0
expect_said 'netcat: .*192.0.2.1:0'

netcat_listens here /dev/null /dev/null
(timeout 8 "$netcat" 127.0.0.1 "$port" <"$tmp" >/dev/null 2>"$tmp/said") && fail "a folder was sent"
expect_said 'netcat: standard input: Is a directory'
ends "$pid" || fail "the peer of a failed netcat ended with $?"

netcat_listens there "$tmp/file" /dev/null
timeout 8 "$netcat" 127.0.0.1 "$port" </dev/null 2>"$tmp/said" | head -c 10 >/dev/null
[[ ${PIPESTATUS[0]} == 1 ]] || fail "a closed output gave no error"
expect_said 'netcat: standard output: Broken pipe'

# The same while the input is a pipe that stays open: it ends at once.
netcat_listens there "$tmp/file" /dev/null
mkfifo "$tmp/idle"
sleep 1000 >"$tmp/idle" &
timeout 8 "$netcat" 127.0.0.1 "$port" <"$tmp/idle" 2>"$tmp/said" | head -c 10 >/dev/null
[[ ${PIPESTATUS[0]} == 1 ]] || fail "netcat with a closed output and an idle input did not end"
expect_said 'netcat: standard output: Broken pipe'
exit 0
