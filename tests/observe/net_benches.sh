# shellcheck shell=bash
# bench/net/clients and bench/net/stream --seconds with programs that stand in for servers, clients and receivers: the figures,
# the plots, and that failed, stalled and unserved connections are reported.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
net=$here/../../bench/net
fail() {
    echo "FAIL: $*" >&2
    exit 1
}
command -v python3 >/dev/null || {
    echo "SKIP: python3 is not installed"
    exit 77
}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
mkdir -p "$directory/bench/net" "$directory/examples" "$directory/path"

# says TEXT PATTERN...
says() {
    local text=$1 pattern
    for pattern in "${@:2}"; do
        grep -qE -- "$pattern" <<<"$text" || fail "'$pattern' is not in: $text"
    done
}

# program PATH: a Python program from standard input
program() {
    { echo "#!/usr/bin/env python3"; cat; } >"$1"
    chmod +x "$1"
}

# A server that uses some CPU time for each connection and then closes it.
program "$directory/examples/redis_ping" <<'PYTHON'
import socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    peer, _ = listener.accept()
    end = time.process_time() + 0.002
    while time.process_time() < end:
        pass
    peer.close()
PYTHON
cp "$directory/examples/redis_ping" "$directory/bench/net/raw_epoll"
# 10 connections work, of 20 two are lost, of 30 five get no reply, 40 stall, with 50 it cannot connect.
program "$directory/bench/net/load" <<'PYTHON'
import json, sys
count = int(sys.argv[sys.argv.index("-c") + 1])
assert "--inline" in sys.argv
if count == 50:
    sys.exit("load: connect: Connection refused")
requests = 0 if count == 40 else 5000
print(json.dumps({"requests": requests, "requests_per_second": requests * 2.0, "seconds": 0.5, "p99_us": 7000.0,
                  "server_cpu_us_per_request": 4.25, "server_busy": 0.97, "errors": 2 if count == 20 else 0, "stalled": count == 40,
                  "unserved": 5 if count == 30 else 0}))
PYTHON
# It accepts at most 30 connections.
program "$directory/path/redis-benchmark" <<'PYTHON'
import socket, sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
count, requests = int(arguments["-c"]), int(arguments["-n"])
assert arguments["-t"] == "ping_inline" and requests >= 10 * count, sys.argv
if count > 30:
    sys.exit("Error: Server closed the connection")
socket.create_connection(("127.0.0.1", int(arguments["-p"]))).recv(1)
print('"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"')
print(f'"PING_INLINE","{1000.0 * count}","1.5","0.1","1.4","1.8","2.0","9.0"')
PYTHON
clients() { PATH=$directory/path:$PATH "$net/clients" "$directory" --only coil,raw_epoll,asio --quick "$@" 2>&1; }

status=0
text=$(clients --clients 10 --rounds 2 --check --requests 1) || status=$?
[[ $status == 0 ]] || fail "with 10 connections it ended with $status: $text"
says "$text" '^coil redis_ping +10\.0$' '^Asio +not installed \(libasio-dev\)$' 'c=10: every connection of coil is served +PASS$'
if grep -q '^!' <<<"$text"; then fail "a failure where there is none: $text"; fi

status=0
text=$(clients --clients 50,20,30,40,10 --check --plot) || status=$?
[[ $status == 1 ]] || fail "--check ended with $status: $text"
says "$text" \
    '^redis-benchmark: thousand requests/s +c=10 +c=20 +c=30 +c=40 +c=50$' \
    '^coil redis_ping +10\.0 +20\.0 +30\.0 +FAILS +FAILS$' \
    '^coil redis_ping +10\.0 +10\.0 ! +10\.0 ! +FAILS +FAILS$' \
    '^raw C epoll +4\.25 +4\.25 ! +4\.25 ! +FAILS +FAILS$' \
    '^coil redis_ping +97 +97 ! +97 ! +FAILS +FAILS$' \
    'c=10: every connection of coil is served +PASS$' \
    'c=20: every connection of coil is served +2 connections lost or wrong replies.* FAIL$' \
    '^! load, 30 connections, raw C epoll: 5 connections without a reply in 0\.5 s$' \
    '^! load, 40 connections, coil redis_ping: no reply to any connection for seconds$' \
    '^! load, 50 connections, coil redis_ping: load printed no result' \
    '^! redis-benchmark, 40 connections, raw C epoll: redis-benchmark ended with 1: Error: Server closed the connection$'
python3 - "$directory/bench" <<'PYTHON' || fail "the figures or the plot of net/clients are wrong"
import json, re, sys
import xml.etree.ElementTree as xml

stored = json.load(open(sys.argv[1] + "/clients.json"))
assert stored["clients"] == [10, 20, 30, 40, 50]
coil = stored["servers"]["coil"]["connections"]
assert len(coil["20"]["load"]["runs"]) == 1 and len(coil["20"]["load"]["failures"]) == 1, coil
assert coil["40"]["load"]["runs"] == [None], coil["40"]
assert coil["30"]["redis_benchmark"]["runs"][0]["mean_us"] == 1500, coil["30"]
svg = xml.parse(sys.argv[1] + "/clients-curves.svg").getroot()
name = "{http://www.w3.org/2000/svg}"
# A line of three points for each of two servers, in each of seven charts: the cells without a figure are left out.
lines = [each.get("d") for each in svg.iter(name + "path") if each.get("class") == "line" and "L" in each.get("d")]
assert len(lines) == 14 and all(len(re.findall("[ML]", line)) == 3 for line in lines), lines
width, height = float(svg.get("width")), float(svg.get("height"))
for each in svg.iter(name + "text"):
    if each.get("x") is not None:
        assert 0 < float(each.get("x")) < width and 0 < float(each.get("y")) < height, each.attrib
texts = [each.text for each in svg.iter(name + "text")]
assert texts.count("redis-benchmark") == 3 and texts.count("load") == 4 and "coil redis_ping" in texts, texts
PYTHON

# Limits are explained before anything is started.
for arguments in "--clients 0" "--clients ten" "--clients 40000"; do
    # shellcheck disable=SC2086
    if text=$(clients $arguments); then fail "'$arguments' was accepted"; fi
done
if text=$(ulimit -n 1000 && clients --clients 5000); then fail "5000 connections with 1000 descriptors: $text"; fi
says "$text" '5000 connections need 5160 open files in one process, and its hard limit is 1000 .*ulimit -n 5160'
if text=$(clients --clients 10 --only nobody); then fail "an unknown server was accepted"; fi
says "$text" 'no such server: nobody'

# bench/net/stream --seconds: the sender of the benchmark sends to receivers of the test.
cc=$(command -v cc || command -v clang || command -v gcc || true)
if [[ -z $cc ]]; then
    echo "no C compiler: the streams are not tested"
    exit 0
fi
"$cc" -D_GNU_SOURCE -O1 -o "$directory/bench/net/stream_source" "$net/peers/stream_source.c"
for wrong in "1" "1 --seconds 0" "1 5 --seconds 2" "1 --seconds 2 5" "1 --seconds"; do
    status=0
    # shellcheck disable=SC2086
    "$directory/bench/net/stream_source" $wrong >/dev/null 2>&1 || status=$?
    [[ $status == 2 ]] || fail "stream_source $wrong ended with $status"
done
# A receiver that passes on everything; after 40 MiB it pauses or ends with an error if told to.
program "$directory/receiver" <<'PYTHON'
import os, socket, sys, time
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
peer, _ = listener.accept()
count, reached = 0, False
while chunk := peer.recv(1 << 18):
    os.write(1, chunk)
    count += len(chunk)
    if count > 40 << 20 and not reached:
        reached = True
        if sys.argv[2] == "pause":
            time.sleep(2.2)
        if sys.argv[2] == "end":
            sys.exit("enough")
PYTHON
program "$directory/examples/netcat" <<PYTHON
import os, sys
os.execv("$directory/receiver", ["receiver", sys.argv[2], "pause"])
PYTHON
program "$directory/bench/net/raw_sink" <<PYTHON
import os, sys
os.execv("$directory/receiver", ["receiver", sys.argv[1], "end" if "--splice" in sys.argv else "all"])
PYTHON
if text=$("$net/stream" "$directory" --seconds 1 2>&1); then fail "one second was accepted"; fi
status=0
text=$("$net/stream" "$directory" --only coil,raw_copy,raw_splice --seconds 2 --plot 2>&1) || status=$?
[[ $status == 1 ]] || fail "with a receiver that fails it ended with $status: $text"
says "$text" \
    '^raw C, splice +FAILED$' \
    'every run ends, and every byte arrives in order +raw C, splice: .* FAIL$' \
    'coil: no second without data +FAIL$'
python3 - "$directory/bench" "$text" <<'PYTHON' || fail "the figures or the plot of stream --seconds are wrong: $text"
import json, re, statistics, sys
import xml.etree.ElementTree as xml

stored = json.load(open(sys.argv[1] + "/stream-seconds.json"))
for key, empty in (("coil", 1), ("raw_copy", 0)):
    (run,) = stored["receivers"][key]["runs"]
    rates = run["mb_per_s"]
    assert len(rates) == len(run["cpu_s"]) == 2 and rates.count(0) >= empty, run
    assert all(0 <= cpu < 2 for cpu in run["cpu_s"]), run
    # the row: mean, standard deviation, % of the mean, lowest second, seconds without data
    title = stored["receivers"][key]["title"]
    row = next(line for line in sys.argv[2].splitlines() if line.startswith(title))
    cells = [float(cell.replace(",", "")) for cell in re.split(" {2,}", row)[1:]]
    mean, deviation = statistics.mean(rates), statistics.stdev(rates)
    assert abs(cells[0] - mean) <= 0.51 and abs(cells[1] - deviation) <= 0.051, (cells, rates)
    assert cells[4] == rates.count(0), (cells, rates)
assert stored["receivers"]["raw_splice"]["runs"] == [], stored
texts = [each.text for each in xml.parse(sys.argv[1] + "/stream-rates.svg").getroot().iter("{http://www.w3.org/2000/svg}text")]
assert "coil netcat" in texts and "raw C, splice" not in texts, texts
PYTHON
