#!/bin/bash
# The servers of the tutorial do what its pages say.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3

# serves STEP ARGUMENT...: starts the server of a step; sets $server and $port.
serves() {
    need_example "tutorial/$1"
    port=$(free_port)
    start "$1" "$examples/tutorial/$1" "$port" "${@:2}"
    server=$pid
    is_up "$port" || fail "$1 does not listen: $(cat "$tmp/$1.err")"
}

# talks STEP: a script for the port $port on stdin.
talks() {
    timeout 20 python3 - "$port" "$server" < <(
        cat <<'PYTHON'
import os, signal, socket, sys

server = int(sys.argv[2])

class client:
    def __init__(self, *lines):
        self.socket = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=8)
        self.file = self.socket.makefile("rb")
        self.say(*lines)
    def say(self, *lines):
        self.socket.sendall("".join(line + "\n" for line in lines).encode())
    def hears(self, *lines):
        for line in lines:
            heard = self.file.readline().decode()
            assert heard == line + "\n", (heard, line)
    def hears_the_end(self):
        rest = self.file.read()
        assert rest == b"", rest
PYTHON
        cat
    ) || fail "$1: the clients failed: $(cat "$tmp/$1.err")"
}

# ended STEP
ended() {
    kill -KILL "$server"
    wait "$server" 2>/dev/null
    is_silent "$1" || fail "$1 complained: $(cat "$tmp/$1.err")"
}

serves step1_echo
talks step1_echo <<'PYTHON'
a = client("hello", "again")
a.hears("hello", "again")
PYTHON
ended step1_echo

serves step2_lines
talks step2_lines <<'PYTHON'
a = client()
a.hears("What is your name?")
a.socket.sendall(b"A")
a.socket.sendall(b"da\n")
a.hears("Hello Ada")
a.hears_the_end()
PYTHON
ended step2_lines

serves step3_chat
talks step3_chat <<'PYTHON'
a = client("ada", "first")
a.hears("ada: first")
b = client("bob", "second")
a.hears("bob: second")
b.hears("bob: second")
PYTHON
ended step3_chat

serves step4_limits 2 300
talks step4_limits <<'PYTHON'
a = client("ada", "first")
a.hears("ada: first")
b = client("bob", "second")
b.hears("bob: second")
c = client()
c.hears("* the room is full")
c.hears_the_end()
b.say("x" * 600)  # too long
b.hears_the_end()
a.hears("bob: second")
a.hears_the_end()  # idle
PYTHON
ended step4_limits

for step in step5_stop step6_cores; do
    serves "$step"
    talks "$step" <<'PYTHON'
a = client("ada")
a.hears("* ada is here")
b = client("bob", "hello")
a.hears("* bob is here", "bob: hello")
b.hears("* bob is here", "bob: hello")
os.kill(server, signal.SIGTERM)
for each in a, b:
    each.hears("* the server stops")
    each.hears_the_end()
PYTHON
    ends "$server" || fail "$step ended with $?: $(cat "$tmp/$step.err")"
    is_silent "$step" || fail "$step complained: $(cat "$tmp/$step.err")"
    [[ $(tail -n 1 "$tmp/$step.out") == stopped ]] || fail "$step said: $(cat "$tmp/$step.out")"
done
