#!/bin/bash
# proxy: both directions, half-close, a server that is not there, a Unix socket in front.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need nc netcat-openbsd
need_example proxy
need_example netcat

expect_status 2 "$examples/proxy" 127.0.0.1 localhost 80
grep -q '^usage: ' "$tmp/said" || fail "no usage"

head -c 3000003 /dev/urandom >"$tmp/question"
head -c 1000001 /dev/urandom >"$tmp/answer"

"$examples/netcat" -l 127.0.0.1 0 <"$tmp/answer" >"$tmp/asked" 2>"$tmp/server.err" &
server=$!
server_port=$(port_of "$tmp/server.err" "$server") || fail "no server"
start proxy "$examples/proxy" 127.0.0.1:0 localhost "$server_port"
proxy=$pid
port=$(port_of "$tmp/proxy.out" "$proxy") || fail "no proxy: $(cat "$tmp/proxy.err")"

timeout 20 nc -N 127.0.0.1 "$port" <"$tmp/question" >"$tmp/answered" || fail "nc ended with $?"
ends "$server" || fail "the server ended with $?"
cmp "$tmp/question" "$tmp/asked" || fail "the question differs"
cmp "$tmp/answer" "$tmp/answered" || fail "the answer differs"

# The server is gone: the client sees the end, and the proxy says why.
timeout 8 nc -N 127.0.0.1 "$port" </dev/null >"$tmp/nothing" || true
[[ ! -s $tmp/nothing ]] || fail "something came from nowhere"
for ((try = 0; try < 500; try++)); do
    grep -q "cannot connect to localhost port $server_port: .*Connection refused" "$tmp/proxy.err" && break
    sleep 0.01
done
grep -q "Connection refused" "$tmp/proxy.err" || fail "the proxy said: $(cat "$tmp/proxy.err")"
kill "$proxy"

# A Unix socket in front.
rm "$tmp/server.err"
"$examples/netcat" -l 127.0.0.1 0 <"$tmp/answer" >"$tmp/asked" 2>"$tmp/server.err" &
server=$!
server_port=$(port_of "$tmp/server.err" "$server") || fail "no server"
start front "$examples/proxy" "unix:$tmp/front" 127.0.0.1 "$server_port"
for ((try = 0; try < 500; try++)); do
    [[ -S $tmp/front ]] && break
    sleep 0.01
done
timeout 20 "$examples/netcat" -U "$tmp/front" <"$tmp/question" >"$tmp/answered" || fail "netcat -U ended with $?"
ends "$server" || fail "the server ended with $?"
cmp "$tmp/question" "$tmp/asked" || fail "the question differs"
cmp "$tmp/answer" "$tmp/answered" || fail "the answer differs"
exit 0
