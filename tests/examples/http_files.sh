#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# http_files: serves files and refuses paths outside the folder. Each hostile client is ended by a limit while the others are
# served.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3
need_example http_files

for arguments in "" "0" "x $tmp" "65536 $tmp" "0 $tmp --idle" "0 $tmp --idle x" "0 $tmp --what 1"; do
    expect_status 2 "$examples/http_files" $arguments
    expect_said '^usage: http_files PORT FOLDER '
done
expect_status 1 "$examples/http_files" 0 "$tmp/none"
expect_said "^http_files: $tmp/none"

mkdir -p "$tmp/site/sub folder"
echo "start" >"$tmp/site/index.html"
echo "secret" >"$tmp/secret"
echo "inside" >"$tmp/site/sub folder/in.txt"
head -c 8000000 /dev/urandom >"$tmp/site/large"
: >"$tmp/site/empty"
ln -s ../secret "$tmp/site/out"
ln -s "sub folder/in.txt" "$tmp/site/in"
mkfifo "$tmp/site/fifo"

serves files "$examples/http_files" 0 "$tmp/site" --idle 60000
hostile_test "$tmp/site/large" <<'PYTHON'
from hostile import *
from http.client import HTTPConnection

server = Server()
http = HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)

def ask(target, status, method="GET"):
    http.putrequest(method, target, skip_host=True)
    http.endheaders()
    response = http.getresponse()
    body = response.read()
    assert response.status == status, (target, response.status)
    return body, response

for target in "/", "/index.html", "/?query", "/%69ndex.html":
    body, response = ask(target, 200)
    assert body == b"start\n", body
    assert response.getheader("Content-Type") == "text/html; charset=utf-8"
body, response = ask("/index.html", 200, "HEAD")
assert body == b"" and response.getheader("Content-Length") == "6"
assert ask("/sub%20folder/in.txt", 200)[0] == b"inside\n"
assert ask("/in", 200)[0] == b"inside\n"
assert ask("/empty", 200)[0] == b""
with open(sys.argv[4], "rb") as file:
    assert ask("/large", 200)[0] == file.read()
for target in ("/../secret", "/sub%20folder/../../secret", "/%2e%2e/secret", "/..%2fsecret", "/out", "/none", "/fifo",
               "/sub%20folder", "//etc/passwd", "/%2fetc%2fpasswd"):
    ask(target, 404)
for target in "/%", "/%0", "/%zz", "/%00":
    ask(target, 400)
ask("/", 405, "DELETE")
assert server.metrics()["accepted"] == 1, "the connection was not kept"

def raw(text):
    s = connect(server.port)
    s.sendall(text)
    return rest_of(s)

for text in b"nonsense\r\n\r\n", b"GET / HTTP/3\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello":
    assert raw(text).startswith(b"HTTP/1.1 400 "), text
assert raw(b"GET / HTTP/1.0\r\n\r\n").endswith(b"\r\nConnection: close\r\n\r\nstart\n")
two = raw(b"GET / HTTP/1.1\r\n\r\nGET /in HTTP/1.1\r\nConnection: close\r\n\r\n")
assert two.count(b"200 OK") == 2 and two.endswith(b"inside\n"), two
PYTHON
stops_within 3

serves files "$examples/http_files" 0 "$tmp/site" --header 300 --send 300 --idle 1500 --header-size 1000 --grace 300
hostile_test <<'PYTHON'
from hostile import *

server = Server()
request = b"GET /index.html HTTP/1.1\r\n\r\n"

def talk():
    s = connect(server.port)
    s.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert rest_of(s).endswith(b"start\n")

served = Throughout(talk)
idle = connect(server.port)
idle.sendall(request)

stuck = [never_reads(server.port, b"GET /large HTTP/1.1\r\n\r\n") for _ in range(5)]
drips = [Drip(server.port, b"GET /index.html HTTP/1.1\r\nX: " + b"x" * 500) for _ in range(5)]
for i in range(60):
    s = connect(server.port)
    s.sendall((b"GET /large HTTP/1.1\r\n\r\n", b"GET /la", request * 20)[i % 3])
    if i % 2 == 0:
        s.recv(1) if i % 3 != 1 else None
    reset(s)
long = connect(server.port)
long.sendall(b"GET /" + b"x" * 2000)
assert rest_of(long).startswith(b"HTTP/1.1 431 ")

for drip in drips:
    assert drip.must_end().startswith(b"HTTP/1.1 408 ")
server.waits_for("header too slow", 5)
server.waits_for("header too long", 1)
server.waits_for("reader too slow", 5)
assert rest_of(idle).endswith(b"start\n"), "idle"
served.finish()
server.waits_until_closed()
assert server.metrics()["failed"] == 0, server.metrics()
PYTHON
stops_within 4

# After the grace period, connections that have not ended are closed.
serves files "$examples/http_files" 0 "$tmp/site" --send 60000 --grace 200
hostile_test <<'PYTHON'
from hostile import *

server = Server()
stuck = [never_reads(server.port, b"GET /large HTTP/1.1\r\n\r\n") for _ in range(5)]
waiting = connect(server.port)
server.waits_for("requests", 5)
server.must_stop(within=4)
assert rest_of(waiting) == b""
PYTHON
stops_within 4
grep -q ' 5 after the grace period, 0 at the hard deadline$' "$tmp/files.out" || fail "files said: $(cat "$tmp/files.out")"

# More clients than descriptors: connections wait, and each is served.
serves_with_descriptors "${HOSTILE_DESCRIPTORS:-100}" files "$examples/http_files" 0 "$tmp/site"
hostile_test <<'PYTHON'
from hostile import *

server = Server()
kept = connect(server.port)

def talk():
    kept.sendall(b"GET /in HTTP/1.1\r\n\r\n")
    got = b""
    while not got.endswith(b"inside\n"):
        chunk = kept.recv(4096)
        assert chunk, "ended"
        got += chunk

talk()
served = Throughout(talk)
crowd(server, b"GET /index.html HTTP/1.1\r\n\r\n", lambda got: got.endswith(b"start\n"))
served.finish()
now = server.metrics()
assert now["accepted"] == crowd_size() + 1 and now["failed"] == 0, now
PYTHON
stops_within 3
