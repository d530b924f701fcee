#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# logs: all input reaches the output; rotation; each hostile client meets a limit, and the others are served.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need python3 python3
need_example logs

for arguments in "" "out" "out --listen" "out --listen x" "out --listen 65536" "out --what 1 -"; do
    expect_status 2 "$examples/logs" $arguments
    expect_said '^usage: logs OUTPUT '
done
expect_status 1 "$examples/logs" "$tmp/out" "$tmp/none"
grep -q "^logs: .*$tmp/none" "$tmp/said" || fail "said: $(cat "$tmp/said")"
expect_status 1 "$examples/logs" "$tmp/no/out" "$0"
grep -q "^logs: .*$tmp/no/out" "$tmp/said" || fail "said: $(cat "$tmp/said")"

# The matching lines of the inputs, in order, in the output and its old files.
for ((i = 0; i < 5000; i++)); do
    echo "word$((i % 3)) line $i"
done >"$tmp/in"
tail -n 100 "$tmp/in" | "$examples/logs" "$tmp/out" --match "1" --file-size 10000 --keep 100 "$tmp/in" - >"$tmp/said" ||
    fail "logs ended with $?"
files=$(ls -v -r "$tmp"/out.* "$tmp/out")
cmp <(cat $files) <(cat "$tmp/in" <(tail -n 100 "$tmp/in") | grep 1) || fail "not what came in"
for file in $files; do
    (($(stat -c %s "$file") <= 66000)) || fail "$file has $(stat -c %s "$file") bytes"
done
matched=$(cat $files | wc -l)
grep -q "^lines: 5100, matched: $matched, .*rotations: [1-9]" "$tmp/said" || fail "said: $(cat "$tmp/said")"
words=$(awk '{ print $1 }' $files | sort | uniq -c | sort -rn | awk '{ print $1 " " $2 }')
[[ $(tail -n 3 "$tmp/said") == "$words" ]] || fail "said: $(cat "$tmp/said"), not $words"

# No more old files and no more words than requested.
"$examples/logs" "$tmp/few" --file-size 10000 --keep 2 --queue 1 --words 1 "$tmp/in" >"$tmp/said" || fail "logs ended with $?"
[[ $(ls "$tmp"/few*) == "$tmp/few"$'\n'"$tmp/few.1"$'\n'"$tmp/few.2" ]] || fail "files: $(ls "$tmp"/few*)"
grep -q ', uncounted words: 3333, ' "$tmp/said" || fail "said: $(cat "$tmp/said")"

# Hostile clients, and well-behaved ones whose lines all arrive.
serves logs "$examples/logs" "$tmp/net" --listen 0 --line 500 --line-length 1000 --queue 8 --grace 300
hostile_test "$tmp/net" <<'PYTHON'
from hostile import *

server, sent = Server(), 0

def talk():
    global sent
    s = connect(server.port)
    for _ in range(20):
        s.sendall(b"good line %d\n" % sent)
        sent += 1
    s.shutdown(socket.SHUT_WR)
    assert rest_of(s) == b""

served = Throughout(talk)
stuck = [never_reads(server.port, b"stuck\n") for _ in range(5)]
drips = [Drip(server.port, b"drip" * 50) for _ in range(5)]
for i in range(60):
    s = connect(server.port)
    s.sendall((b"", b"reset half", b"reset\n" * 100)[i % 3])
    reset(s)
long = connect(server.port)
long.sendall(b"long" * 500)
rest_of(long)
for drip in drips:
    assert drip.must_end() == b""
server.waits_for("too slow", 10)  # the stuck ones, too
server.waits_for("too long", 1)
served.finish()
server.waits_until_closed()
assert server.metrics()["failed"] == 0, server.metrics()
stuck = [never_reads(server.port, b"last\nhalf") for _ in range(5)]
server.waits_for("open", 5)
while True:
    with open(sys.argv[4]) as file:
        lines = file.read().splitlines()
    if lines.count("last") == 5:
        break
    time.sleep(0.01)
server.must_stop(within=4)
good = [line for line in lines if line.startswith("good")]
assert good == [f"good line {i}" for i in range(sent)], (len(good), sent)
assert set(lines) - set(good) <= {"stuck", "reset", "last"}, set(lines) - set(good)
PYTHON
stops_within 4
grep -q '^half' "$tmp/net" && fail "half a line was written"

# A writer that is slower than a client makes the client wait: memory stays bounded.
mkfifo "$tmp/slow"
exec 9<>"$tmp/slow" # a reader that does not read
serves logs "$examples/logs" "$tmp/slow" --listen 0 --file-size 1000000000
hostile_test <<'PYTHON'
from hostile import *

server = Server()
s = connect(server.port)
s.settimeout(1)
sent = 0
try:
    while sent < 100_000_000:
        sent += s.send(b"x" * 999 + b"\n")
    raise AssertionError("the client did not have to wait")
except TimeoutError:
    pass
now = server.metrics()
assert now["waits for the writer"] > 0 and now["lines"] < 1200, now
with open(f"/proc/{server.pid}/status") as status:
    memory = int(re.search(r"VmRSS:\s*(\d+) kB", status.read())[1])
assert memory < 200_000, memory
PYTHON
cat <&9 >/dev/null & # now it is read, and what was queued can be written
stops_within 5

# If the output takes nothing, the grace period ends the writer, too.
mkfifo "$tmp/stuck"
exec 8<>"$tmp/stuck"
serves logs "$examples/logs" "$tmp/stuck" --listen 0 --file-size 1000000000 --grace 300
hostile_test <<'PYTHON'
from hostile import *

server = Server()
s = connect(server.port)
s.sendall((b"x" * 999 + b"\n") * 200)  # more than a pipe holds
server.waits_for("lines", 200)
server.must_stop(within=4)
PYTHON
ends "$server" || fail "logs ended with $?"
grep -q '^logs: the output did not take all lines' "$tmp/logs.err" || fail "logs said: $(cat "$tmp/logs.err")"

# More clients than descriptors: connections wait, and each is served.
serves_with_descriptors "${HOSTILE_DESCRIPTORS:-100}" logs "$examples/logs" "$tmp/crowd" --listen 0
hostile_test <<'PYTHON'
from hostile import *

server = Server()
crowd(server, b"crowd\n")
now = server.metrics()
assert now["lines"] == crowd_size() and now["failed"] == 0, now
PYTHON
stops_within 3
[[ $(wc -l <"$tmp/crowd") == "${HOSTILE_CLIENTS:-400}" ]] || fail "$(wc -l <"$tmp/crowd") lines"
