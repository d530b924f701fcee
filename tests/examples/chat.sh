#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# chat: lines reach all clients; each hostile client meets a limit, and the others are served.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3
need_example chat

for arguments in "" "x" "65536" "0 1" "0 --queue" "0 --queue x" "0 --what 1"; do
    expect_status 2 "$examples/chat" $arguments
    expect_said '^usage: chat PORT '
done

# Without hostile clients; the room says goodbye.
serves chat "$examples/chat" 0
hostile_test <<'PYTHON'
from hostile import *

server = Server()
clients = [connect(server.port).makefile("rwb") for _ in range(5)]
server.waits_for("open", 5)
for i, client in enumerate(clients):
    client.write(b"from %d\n" % i)
    client.flush()
    for each in clients:
        assert each.readline() == b"from %d\n" % i
server.must_stop(within=3)
for each in clients:
    assert each.read() == b"* the server stops\n"
PYTHON
stops_within 3

# talks: two clients that take turns, each waiting for its line to reach both, among hostile clients that
# the script on the standard input adds.
talks() {
    hostile_test < <(
        cat <<'PYTHON'
from hostile import *

server = Server()
pair = [connect(server.port).makefile("rwb") for _ in range(2)]
server.waits_for("open", 2)
said = 0

def talk():
    global said
    said += 1
    line = b"%08d" % said + b"." * 400 + b"\n"
    pair[said % 2].write(line)
    pair[said % 2].flush()
    for each in pair:
        while (heard := each.readline()) != line:
            assert heard and not heard.startswith(b"0000"), heard

served = Throughout(talk)
PYTHON
        cat
        cat <<'PYTHON'
served.finish()
assert server.metrics()["failed"] == 0, server.metrics()
stuck = [never_reads(server.port, b"hello\n") for _ in range(3)]
server.waits_for("open", 5)
server.must_stop(within=4)
PYTHON
    )
}

# Clients that do not read are dropped,
serves chat "$examples/chat" 0 --queue 16 --send-buffer 4096 --send 60000 --grace 300
talks <<'PYTHON'
stuck = [never_reads(server.port) for _ in range(5)]
server.waits_for("dropped clients", 5)
server.waits_until_closed(2)
assert server.metrics()["dropped lines"] == 0
PYTHON
stops_within 4

# or their lines are dropped; a client that reads again is told so.
serves chat "$examples/chat" 0 --queue 16 --send-buffer 4096 --send 60000 --grace 300 --drop-lines 1
talks <<'PYTHON'
stuck = [never_reads(server.port) for _ in range(5)]
server.waits_for("dropped lines", 10)
text = b""
while b"* you missed " not in text:
    text += stuck[0].recv(65536)
now = server.metrics()
assert now["dropped clients"] == 0 and now["open"] == 7, now
PYTHON
stops_within 4

# Lines that are too slow or too long, and resets.
serves chat "$examples/chat" 0 --line 1000
talks <<'PYTHON'
drips = [Drip(server.port, b"x" * 200) for _ in range(5)]
for i in range(60):
    s = connect(server.port)
    s.sendall((b"", b"half", b"xy\n" * 5)[i % 3])
    reset(s)
long = connect(server.port)
long.sendall(b"x" * 2000)
rest_of(long)
for drip in drips:
    drip.must_end()
server.waits_for("line too slow", 5)
server.waits_for("line too long", 1)
server.waits_until_closed(2)
PYTHON
stops_within 4

# The limit on each write ends a client, too.
serves chat "$examples/chat" 0 --queue 100000 --send-buffer 4096 --send 200
hostile_test <<'PYTHON'
from hostile import *

server = Server()
stuck = never_reads(server.port)
talker = connect(server.port)
server.waits_for("open", 2)
for i in range(1000):
    talker.sendall(b"x" * 400 + b"\n")
    talker.recv(401, socket.MSG_WAITALL)
server.waits_for("reader too slow", 1)
PYTHON
stops_within 4

# More clients than descriptors: connections wait, and each is served.
serves_with_descriptors "${HOSTILE_DESCRIPTORS:-100}" chat "$examples/chat" 0 --queue 100000
hostile_test <<'PYTHON'
from hostile import *

server = Server()
kept = connect(server.port).makefile("rwb")

def talk():
    kept.write(b"kept\n")
    kept.flush()
    while kept.readline() != b"kept\n":
        pass

talk()
served = Throughout(talk)
crowd(server, b"mine\n", lambda got: b"mine\n" in got)
served.finish()
now = server.metrics()
assert now["accepted"] == crowd_size() + 1 and now["failed"] == 0, now
PYTHON
stops_within 3
