#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# redis_pool with servers that answer, stall, reset, are away and come back, and with hostile clients.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3
need_example redis_pool

for arguments in "" "0 localhost" "x localhost 1" "0 localhost x" "0 localhost 1 --depth" "0 localhost 1 --connections 0"; do
    expect_status 2 "$examples/redis_pool" $arguments
    expect_said '^usage: redis_pool PORT REDIS_HOST REDIS_PORT '
done

# pools REDIS_PORT ARGUMENT...
pools() { serves pool "$examples/redis_pool" 0 127.0.0.1 "$1" --back-off 10 --longest-wait 100 "${@:2}"; }

# with_fake_redis ARGUMENT...: a script with a fake redis in it.
with_fake_redis() {
    hostile_test "$@" < <(
        cat <<'PYTHON'
from hostile import *

class Redis(threading.Thread):
    """Answers ECHO; what else it does, the word that is echoed says."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", port), backlog=100)
        self.connections, self.commands = [], 0
        self.start()

    def run(self):
        while True:
            try:
                s = self.listener.accept()[0]
            except OSError:
                return
            self.connections.append(s)
            threading.Thread(target=self.serve, args=[s], daemon=True).start()

    def serve(self, s):
        file = s.makefile("rb")
        try:
            while line := file.readline():
                words = []
                for _ in range(int(line[1:])):
                    size = int(file.readline()[1:])
                    words.append(file.read(size + 2)[:-2])
                self.commands += 1
                word = words[1]
                answer = b"$%d\r\n%s\r\n" % (len(word), word)
                if word == b"stall":
                    time.sleep(20)
                elif word == b"reset":
                    s.sendall(answer[:5])
                    file.close()
                    reset(s)
                    return
                elif word == b"drip":
                    for i in range(1000):
                        s.sendall(answer[i : i + 1] or b"x")
                        time.sleep(0.3)
                elif word == b"nonsense":
                    s.sendall(b"$x\r\n\r\n")
                elif word == b"huge":
                    s.sendall(b"$2000000000\r\n")
                elif word == b"nested":
                    s.sendall(b"*2\r\n*2\r\n:1\r\n$-1\r\n" + answer)
                    continue
                s.sendall(answer)
        except OSError:
            pass

    def end(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in self.connections:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

class Client:
    def __init__(self):
        self.file = connect(server.port).makefile("rwb")

    def send(self, word):
        self.file.write(b"ECHO %s\r\n" % word)
        self.file.flush()

    def receive(self):
        line = self.file.readline()
        assert line, "the connection ended"
        if line[:1] == b"$":
            line = self.file.read(int(line[1:]) + 2)
        return line.rstrip(b"\r\n")

    def ask(self, word):
        self.send(word)
        return self.receive()

server, redis_port = Server(), int(sys.argv[4])
PYTHON
        cat
    )
}

redis_port=$(free_port)

# While redis is away, commands time out or are refused; when it comes back, the pool finds it.
pools "$redis_port" --connections 2 --waiters 3 --command 300
with_fake_redis "$redis_port" <<'PYTHON'
clients = [Client() for _ in range(8)]
for client in clients:
    client.send(b"x")
answers = sorted(client.receive() for client in clients)
assert len([a for a in answers if b"Resource temporarily unavailable" in a]) == 5, answers
assert len([a for a in answers if b"timed out" in a]) == 3, answers
now = server.metrics()
assert now["refused"] == 5 and now["timed out"] == 3 and now["broken"] > 0, now

redis = Redis(redis_port)
server.waits_for("made", 2)
for i in range(50):
    assert clients[i % 8].ask(b"%d" % i) == b"%d" % i
# Connections that were closed while they were idle are replaced before a command needs them.
redis.end()
made = server.metrics()["made"]
redis = Redis(redis_port)
server.waits_for("made", made + 2)
assert clients[0].ask(b"again") == b"again"
PYTHON
stops_within 3

# One command that stalls, drips or resets costs its connection; the others continue.
pools "$redis_port" --connections 4 --command 1000 --depth 1
with_fake_redis "$redis_port" <<'PYTHON'
redis = Redis(redis_port)
server.waits_for("made", 4)
client = Client()
assert client.ask(b"hello") == b"hello"
client.send(b"nested")
assert [client.file.readline() for _ in range(4)] == [b"*2\r\n", b"*2\r\n", b":1\r\n", b"$-1\r\n"]
assert client.receive() == b"nested"
client.file.write(b"\r\n  \r\nECHO  a\r\nECHO\tb\r\n")
client.file.flush()
assert client.receive() == b"a" and client.receive() == b"b"

good = Client()
count = 0

def talk():
    global count
    count += 1
    assert good.ask(b"%d" % count) == b"%d" % count

served = Throughout(talk)
for word in b"reset", b"nonsense", b"huge":
    answer = client.ask(word)
    assert b"Connection reset" in answer, (word, answer)
slow = [Client() for _ in range(2)]
slow[0].send(b"stall")
slow[1].send(b"drip")
for each in slow:
    assert b"timed out" in each.receive()
server.waits_for("broken", 4)
server.waits_for("made", 8)

# Hostile clients: one that sends and does not read, resets, and lines that are too long.
stuck = [never_reads(server.port, b"ECHO x\r\n" * 100) for _ in range(5)]
for i in range(60):
    s = connect(server.port)
    s.sendall((b"", b"ECHO ha", b"ECHO reset-client\r\n" * 20)[i % 3])
    reset(s)
long = connect(server.port)
try:
    long.sendall(b"x" * 10000)
except OSError:
    pass
rest_of(long)
for s in stuck:
    reset(s)
server.waits_until_closed(4)
served.finish()
assert server.metrics()["failed"] == 0, server.metrics()
# A command in flight is answered although the server is asked to stop; the others end immediately.
client.send(b"stall")
time.sleep(0.05)
server.must_stop(within=4)
assert b"timed out" in client.receive()
PYTHON
stops_within 4

# A client that never reads its answers, and one that sends a byte at a time.
pools "$redis_port" --line 500 --send 300
with_fake_redis "$redis_port" <<'PYTHON'
redis = Redis(redis_port)
stuck = connect(server.port, receive_buffer=2048)
stuck.settimeout(0.5)
try:
    while True:
        stuck.sendall(b"ECHO " + b"x" * 4000 + b"\r\n")
except OSError:
    pass
Drip(server.port, b"drip" * 50).must_end()
server.waits_until_closed()
PYTHON
stops_within 3

# More clients than descriptors: connections wait, and each is served.
serves_with_descriptors "${HOSTILE_DESCRIPTORS:-100}" pool "$examples/redis_pool" 0 127.0.0.1 "$redis_port" --command 10000
with_fake_redis "$redis_port" <<'PYTHON'
redis = Redis(redis_port)
kept = Client()

def talk():
    assert kept.ask(b"kept") == b"kept"

talk()
served = Throughout(talk)
crowd(server, b"ECHO mine\r\n", lambda got: got == b"$4\r\nmine\r\n")
served.finish()
now = server.metrics()
assert now["accepted"] == crowd_size() + 1 and now["failed"] == 0, now
PYTHON
stops_within 3

# A real redis, if it is installed.
if command -v redis-server >/dev/null; then
    redis_port=$(free_port)
    start redis redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --dir "$tmp"
    redis=$pid
    is_up "$redis_port" || fail "redis-server did not start: $(cat "$tmp/redis.out")"
    pools "$redis_port"
    hostile_test <<'PYTHON'
from hostile import *

server = Server()
clients = [connect(server.port).makefile("rwb") for _ in range(20)]
for i in range(50):
    for n, client in enumerate(clients):
        client.write(b"INCRBY total %d\r\nSET key%d %d\r\nGET key%d\r\n" % (i, n, i, n))
        client.flush()
    for client in clients:
        assert client.readline().startswith(b":") and client.readline() == b"+OK\r\n"
        assert client.readline()[:1] == b"$" and client.readline() == b"%d\r\n" % i
clients[0].write(b"GET total\r\nNONSENSE\r\n")
clients[0].flush()
assert clients[0].readline() == b"$5\r\n" and clients[0].readline() == b"%d\r\n" % (20 * sum(range(50)))
assert clients[0].readline().startswith(b"-ERR")
PYTHON
    stops_within 3
    kill -KILL "$redis" && wait "$redis" 2>/dev/null
fi
exit 0
