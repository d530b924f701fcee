#!/bin/bash
# tls_echo: everything comes back, the certificate is reloaded, and a client without TLS is refused.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need openssl openssl
if [[ ! -x $examples/tls_echo ]]; then
    echo "SKIP: tls_echo was not built: it needs OpenSSL 3 (package libssl-dev)"
    exit 77
fi

expect_status 2 "$examples/tls_echo"
expect_status 2 "$examples/tls_echo" 65536 a b
expect_status 1 "$examples/tls_echo" 0 /nowhere/cert.pem /nowhere/key.pem
expect_said 'cannot open /nowhere/cert.pem'

# certificate NAME: makes a certificate with this subject, which is valid for localhost.
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
        -addext subjectAltName=DNS:localhost -keyout "$tmp/key.pem" -out "$tmp/cert.pem" 2>/dev/null ||
        fail "openssl made no certificate"
}

# ask TEXT: sends it, and prints what comes back until the first line is complete.
ask() {
    local try
    : >"$tmp/answer"
    {
        printf '%s\n' "$1"
        for ((try = 0; try < 800; try++)); do
            [[ -s $tmp/answer ]] && break
            sleep 0.01
        done
    } | timeout 8 openssl s_client -connect "127.0.0.1:$port" -CAfile "$tmp/cert.pem" -verify_hostname localhost \
        -verify_return_error -quiet -no_ign_eof >"$tmp/answer" 2>"$tmp/client.err"
    cat "$tmp/answer"
}

certificate first
start server "$examples/tls_echo" 0 "$tmp/cert.pem" "$tmp/key.pem"
server=$pid
port=$(port_of "$tmp/server.out" "$server") || fail "it did not start: $(cat "$tmp/server.err")"

[[ $(ask hello) == hello ]] || fail "hello did not come back: $(cat "$tmp/client.err")"
grep -q 'CN = first' "$tmp/client.err" || fail "not the first certificate: $(cat "$tmp/client.err")"

certificate second
kill -HUP "$server"
for ((try = 0; try < 500; try++)); do
    grep -q '^reloaded' "$tmp/server.out" && break
    sleep 0.01
done
((try < 500)) || fail "the certificate was not reloaded: $(cat "$tmp/server.err")"
[[ $(ask again) == again ]] || fail "again did not come back: $(cat "$tmp/client.err")"
grep -q 'CN = second' "$tmp/client.err" || fail "not the second certificate: $(cat "$tmp/client.err")"

printf 'GET / HTTP/1.0\r\n\r\n' | timeout 5 openssl s_client -connect "127.0.0.1:$port" -tls1_1 >/dev/null 2>&1 &&
    fail "TLS 1.1 was accepted"
kill -0 "$server" || fail "the server has ended: $(cat "$tmp/server.err")"
grep -q '^the handshake failed: coil: TLS: ' "$tmp/server.err" || fail "the refusal was not reported: $(cat "$tmp/server.err")"
