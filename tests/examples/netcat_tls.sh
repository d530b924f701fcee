#!/bin/bash
# netcat --tls: with itself and with openssl, verification, errors; a build without OpenSSL says what is missing.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need openssl openssl
need_example netcat
netcat=$examples/netcat

for arguments in "--tls -l 0" "--tls --cert c -l 0" "--tls --cert c --key k localhost 1" "--unverified localhost 1" "--cert c --key k -l 0" \
    "--tls --unverified --cert c --key k -l 0" "--tls -e true localhost 1" "--tls -U x" "--tls -k localhost 1"; do
    # shellcheck disable=SC2086 # lists of arguments are split on purpose
    expect_status 2 "$netcat" $arguments
    grep -q '^usage: ' "$tmp/said" || fail "no usage for '$arguments': $(cat "$tmp/said")"
done

port=$(free_port)
expect_status 1 "$netcat" --tls 127.0.0.1 "$port"
if grep -q 'built without OpenSSL' "$tmp/said"; then
    expect_said 'netcat: --tls: .*package libssl-dev'
    exit 0
fi
expect_said 'netcat: cannot connect to 127.0.0.1 .*Connection refused'
expect_status 1 "$netcat" --tls --cert /nowhere/c.pem --key /nowhere/k.pem -l 127.0.0.1 0
expect_said 'cannot open /nowhere/c.pem'

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=netcat -addext subjectAltName=DNS:localhost \
    -keyout "$tmp/key.pem" -out "$tmp/cert.pem" 2>/dev/null || fail "openssl made no certificate"
head -c 3000003 /dev/urandom >"$tmp/file"
head -c 1000001 /dev/urandom >"$tmp/reply"

# netcat_serves INPUT OUTPUT OPTION...: starts netcat -l with TLS; sets $pid and $port.
netcat_serves() {
    rm -f "$tmp/server.err"
    "$netcat" --tls --cert "$tmp/cert.pem" --key "$tmp/key.pem" "${@:3}" -l 127.0.0.1 0 <"$1" >"$2" 2>"$tmp/server.err" &
    pid=$!
    port=$(port_of "$tmp/server.err" "$pid") || fail "netcat --tls -l did not start: $(cat "$tmp/server.err")"
}

# Both directions at once, with half-close.
netcat_serves "$tmp/reply" "$tmp/received"
SSL_CERT_FILE="$tmp/cert.pem" timeout 30 "$netcat" --tls localhost "$port" <"$tmp/file" >"$tmp/answered" 2>"$tmp/said" ||
    fail "netcat --tls ended with $?: $(cat "$tmp/said")"
ends "$pid" || fail "netcat --tls -l ended with $?: $(cat "$tmp/server.err")"
cmp "$tmp/received" "$tmp/file" || fail "the server received something else"
cmp "$tmp/answered" "$tmp/reply" || fail "the client received something else"

# A server that is not trusted, and one with another name; -k: the server goes on after each refusal.
netcat_serves /dev/null "$tmp/received" -k
expect_status 1 "$netcat" --tls localhost "$port"
expect_said 'netcat: .*certificate'
export SSL_CERT_FILE="$tmp/cert.pem"
expect_status 1 "$netcat" --tls 127.0.0.1 "$port"
expect_said 'netcat: .*'
[[ ! -s $tmp/received ]] || fail "something was sent to a server that was not verified"
printf 'trusted\n' | timeout 8 "$netcat" --tls localhost "$port" || fail "a trusted server was refused"
unset SSL_CERT_FILE
printf 'anybody\n' | timeout 8 "$netcat" --tls --unverified 127.0.0.1 "$port" || fail "--unverified ended with $?"
printf 'openssl\n' | timeout 8 openssl s_client -connect "127.0.0.1:$port" -CAfile "$tmp/cert.pem" -verify_return_error -quiet \
    -no_ign_eof >"$tmp/client.out" 2>&1 || true
for ((try = 0; try < 500; try++)); do
    [[ $(cat "$tmp/received") == $'trusted\nanybody\nopenssl' ]] && break
    sleep 0.01
done
[[ $(cat "$tmp/received") == $'trusted\nanybody\nopenssl' ]] || fail "received: $(cat "$tmp/received" "$tmp/server.err")"
kill "$pid"

# A client of openssl's server, which sends each line back reversed; -w ends it.
port=$(free_port)
openssl s_server -accept "127.0.0.1:$port" -cert "$tmp/cert.pem" -key "$tmp/key.pem" -rev -quiet >"$tmp/s_server" 2>&1 </dev/null &
is_up "$port" || fail "openssl s_server does not listen"
(printf 'hello\n'; sleep 3) | SSL_CERT_FILE="$tmp/cert.pem" timeout 8 "$netcat" --tls -w 1 localhost "$port" >"$tmp/answered" 2>"$tmp/said" ||
    fail "netcat -w ended with $?: $(cat "$tmp/said")"
[[ $(cat "$tmp/answered") == olleh ]] || fail "answered: $(cat "$tmp/answered")"
exit 0
