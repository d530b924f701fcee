#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# counter: acknowledged requests survive kill -9 of the server, and truncation or corruption of the end of its file.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example counter

for arguments in "" "serve" "serve 1" "serve x f" "serve 65536 f" "add 1 a" "add 1 a x" "add x a 1" "give 1 a 1" "serve 1 f g"; do
    expect_status 2 "$examples/counter" $arguments
    grep -q '^usage: counter serve PORT FILE' "$tmp/said" || fail "said: $(cat "$tmp/said")"
done

file=$tmp/sum.log

# serves PORT: starts a server; sets $server and $port. The port of a killed server stays in use for a moment.
serves() {
    local try
    for ((try = 0; try < 100; try++)); do
        start serve "$examples/counter" serve "$1" "$file"
        server=$pid
        port=$(port_of "$tmp/serve.out" "$server") && return
        grep -q 'Address already in use' "$tmp/serve.err" || break
        sleep 0.05
    done
    fail "it did not start: $(cat "$tmp/serve.err")"
}

# adds NAME AMOUNT SUM
adds() {
    expect_status 0 "$examples/counter" add "$port" "$1" "$2"
    expect_said "^$3\$"
}

serves 0
adds alice 5 5
adds bob -2 3
adds alice 4 7
adds bob 0 7
kill -KILL "$server"
wait "$server" 2>/dev/null

# A client that asks while no server runs is answered when one is started.
start add "$examples/counter" add "$port" carol 10
client=$pid
serves "$port"
ends "$client" || fail "add ended with $?: $(cat "$tmp/add.err")"
[[ $(cat "$tmp/add.out") == 17 ]] || fail "said: $(cat "$tmp/add.out")"

# A signal ends it with status 0.
kill -TERM "$server"
ends "$server" || fail "serve ended with $?: $(cat "$tmp/serve.err")"

# A truncated or invalid record ends the sequence.
[[ $(stat -c %s "$file") == 128 ]] || fail "the file has $(stat -c %s "$file") bytes"
truncate -s -1 "$file"
serves 0
adds alice 0 7
kill -KILL "$server"
wait "$server" 2>/dev/null
[[ $(stat -c %s "$file") == 96 ]] || fail "the file has $(stat -c %s "$file") bytes"
head -c 64 /dev/zero >>"$file"
serves 0
adds alice 1 8
[[ $(stat -c %s "$file") == 128 ]] || fail "the file has $(stat -c %s "$file") bytes"
kill -TERM "$server"
ends "$server" || fail "serve ended with $?: $(cat "$tmp/serve.err")"

# An inaccessible file is an error that names it, and so is a port in use.
file=$tmp/none/sum.log
expect_status 1 "$examples/counter" serve 0 "$file"
grep -q "^counter: .*$file" "$tmp/said" || fail "said: $(cat "$tmp/said")"
