# Shared by the tests of the examples: source it and use its functions. Programs are always terminated by process id.

set -u
export COIL_WATCHDOG=off # its reports, on a loaded machine, would be output that the tests do not expect
examples=${COIL_EXAMPLES_DIR:?where the examples were built}
tmp=$(mktemp -d)

end_all() {
    local pid
    for pid in $(jobs -pr); do
        kill -KILL "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    rm -rf "$tmp"
}
trap end_all EXIT
trap 'exit 1' INT TERM

fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# need COMMAND PACKAGE: skips the test if a program to compare with is missing.
need() {
    command -v "$1" >/dev/null && return
    printf 'SKIP: %s is not installed (package %s)\n' "$1" "$2"
    exit 77
}

# need_example NAME: fails if the example was not built, so that it is not skipped silently.
need_example() {
    [[ -x $examples/$1 ]] || fail "$examples/$1 is not there"
}

# start NAME COMMAND...: runs COMMAND in the background without input, with its output in $tmp/NAME.out and
# $tmp/NAME.err; sets $pid.
start() {
    local name=$1
    shift
    rm -f "$tmp/$name.out" "$tmp/$name.err"
    "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" </dev/null &
    pid=$!
}

# complaints FILE: prints the errors of a program, without the line that announces the fallback to epoll.
complaints() { sed '/^coil: using epoll instead of io_uring: /d' "$1"; }

# is_silent NAME: whether it has printed no errors.
is_silent() { [[ -z $(complaints "$tmp/$1.err") ]]; }

# port_of FILE PID: waits until the program has printed "listening on ADDRESS:PORT" to FILE; prints the port. FILE must not have
# been written by an earlier program: the shell may not have emptied it yet.
port_of() {
    local try port
    for ((try = 0; try < 500; try++)); do
        port=$(sed -n 's/^listening on .*:\([0-9]\{1,\}\)$/\1/p' "$1" 2>/dev/null)
        if [[ -n $port ]]; then
            printf '%s\n' "$port"
            return
        fi
        kill -0 "$2" 2>/dev/null || break
        sleep 0.01
    done
    return 1
}

# is_up PORT: whether a server listens on PORT.
is_up() {
    local try
    for ((try = 0; try < 500; try++)); do
        [[ -n $(awk -v port=":$(printf %04X "$1")" '$2 ~ port "$" && $4 == "0A"' /proc/net/tcp /proc/net/tcp6) ]] && return
        sleep 0.01
    done
    return 1
}

# free_port: prints an unused port.
free_port() {
    local port
    for ((;;)); do
        port=$((20000 + RANDOM % 12000))
        [[ -z $(awk -v port=":$(printf %04X "$port")" '$2 ~ port "$"' /proc/net/tcp /proc/net/tcp6) ]] && break
    done
    printf '%s\n' "$port"
}

# ends PID: waits for a program started here; fails after five seconds. Returns its exit status.
ends() {
    local try
    for ((try = 0; try < 500; try++)); do
        if ! kill -0 "$1" 2>/dev/null; then
            wait "$1"
            return
        fi
        sleep 0.01
    done
    fail "process $1 did not end"
}

# expect_status STATUS COMMAND...: runs COMMAND with its output in $tmp/said and checks its exit status.
expect_status() {
    local wanted=$1 got=0
    shift
    timeout 8 "$@" >"$tmp/everything" 2>&1 </dev/null || got=$?
    complaints "$tmp/everything" >"$tmp/said"
    [[ $got == "$wanted" ]] || fail "$* ended with $got, not $wanted: $(cat "$tmp/said")"
}

# expect_said PATTERN: checks that $tmp/said is one line that matches PATTERN.
expect_said() {
    local said
    said=$(complaints "$tmp/said")
    [[ $said != *$'\n'* ]] || fail "not one line: $said"
    grep -q -- "$1" <<<"$said" || fail "expected '$1', got: $said"
}

# serves NAME COMMAND...: starts a server that prints "listening on ..."; sets $server, $port and $name.
serves() {
    name=$1
    start "$@"
    server=$pid
    port=$(port_of "$tmp/$name.out" "$server") || fail "$name did not start: $(cat "$tmp/$name.err")"
}

# serves_with_descriptors N NAME COMMAND...: the same with a limit on descriptors.
serves_with_descriptors() {
    # shellcheck disable=SC2016 # that bash expands them
    serves "$2" bash -c 'ulimit -n "$0" && exec "$@"' "$1" "${@:3}"
}

# hostile_test ARGUMENT...: runs a Python script, from the standard input, against the server that was started last; see
# hostile.py.
# shellcheck disable=SC2120 # some scripts pass no argument
hostile_test() {
    PYTHONPATH=$(dirname "${BASH_SOURCE[0]}") PYTHONDONTWRITEBYTECODE=1 timeout "${HOSTILE_LIMIT:-300}" \
        python3 - "$port" "$server" "$tmp/$name.out" "$@" || fail "$name: $(tail -n 4 "$tmp/$name.out" "$tmp/$name.err")"
}

# stops_within SECONDS: SIGTERM ends the server that was started last, successfully and without complaints.
stops_within() {
    local begin=${EPOCHREALTIME/./}
    kill -TERM "$server" 2>/dev/null # unless the script has done it
    ends "$server" || fail "$name ended with $?: $(cat "$tmp/$name.err")"
    local took=$((${EPOCHREALTIME/./} - begin))
    ((took < $1 * 1000000)) || fail "$name took $took µs to stop"
    is_silent "$name" || fail "$name complained: $(cat "$tmp/$name.err")"
}
