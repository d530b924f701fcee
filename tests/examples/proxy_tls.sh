#!/bin/bash
# proxy --tls-cert --tls-key: openssl in front, a server without TLS behind; errors.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need openssl openssl
need_example proxy
need_example netcat

expect_status 2 "$examples/proxy" --tls-cert c 127.0.0.1:0 localhost 80
expect_status 2 "$examples/proxy" --tls-cert
expect_status 1 "$examples/proxy" --tls-cert /nowhere/c.pem --tls-key /nowhere/k.pem 127.0.0.1:0 localhost 80
if grep -q 'built without OpenSSL' "$tmp/said"; then
    expect_said 'proxy: .*package libssl-dev'
    exit 0
fi
expect_said 'cannot open /nowhere/c.pem'

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=proxy -addext subjectAltName=DNS:localhost \
    -keyout "$tmp/key.pem" -out "$tmp/cert.pem" 2>/dev/null || fail "openssl made no certificate"
head -c 500003 /dev/urandom | base64 >"$tmp/answer"

"$examples/netcat" -l -k -e "head -n 1; cat '$tmp/answer'" 127.0.0.1 0 >"$tmp/server.out" 2>"$tmp/server.err" </dev/null &
server_port=$(port_of "$tmp/server.err" $!) || fail "no server"
serves proxy "$examples/proxy" --tls-cert "$tmp/cert.pem" --tls-key "$tmp/key.pem" 127.0.0.1:0 localhost "$server_port"

# The answer ends with the connection, for which s_client waits although its input has ended.
printf 'question\n' | timeout 20 openssl s_client -connect "127.0.0.1:$port" -CAfile "$tmp/cert.pem" -verify_hostname localhost \
    -verify_return_error -quiet >"$tmp/answered" 2>"$tmp/client.err" || fail "s_client ended with $?: $(cat "$tmp/client.err")"
cmp "$tmp/answered" <(echo question; cat "$tmp/answer") || fail "the answer differs"

# A client without TLS is refused, with a reason, and the proxy goes on.
printf 'GET / HTTP/1.0\r\n\r\n' | timeout 8 "$examples/netcat" 127.0.0.1 "$port" >/dev/null 2>&1
for ((try = 0; try < 500; try++)); do
    grep -q '^proxy: no handshake: ' "$tmp/proxy.err" && break
    sleep 0.01
done
grep -q '^proxy: no handshake: ' "$tmp/proxy.err" || fail "the refusal was not reported: $(cat "$tmp/proxy.err")"

# So does another netcat, which verifies the proxy.
[[ $(printf 'again\n' | SSL_CERT_FILE="$tmp/cert.pem" timeout 20 "$examples/netcat" --tls localhost "$port" 2>/dev/null | head -n 1) == again ]] ||
    fail "netcat --tls received something else"
kill -TERM "$server"
ends "$server" || fail "the proxy ended with $?"
exit 0
