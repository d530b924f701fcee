# What the tests of the examples share: source it, then use the functions. Every program is ended by its process id.

set -u
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

# need COMMAND PACKAGE: the test is skipped where a peer is missing.
need() {
    command -v "$1" >/dev/null && return
    printf 'SKIP: %s is not installed (package %s)\n' "$1" "$2"
    exit 77
}

# need_example NAME: it must be there; an example that was not built is not skipped silently.
need_example() {
    [[ -x $examples/$1 ]] || fail "$examples/$1 is not there"
}

# start NAME COMMAND...: in the background, with its output in $tmp/NAME.out and $tmp/NAME.err and no input; sets $pid.
start() {
    local name=$1
    shift
    rm -f "$tmp/$name.out" "$tmp/$name.err"
    "$@" >"$tmp/$name.out" 2>"$tmp/$name.err" </dev/null &
    pid=$!
}

# complaints FILE: what a program has said on stderr. Where io_uring is forbidden it says that once, which is none.
complaints() { sed '/^coil: using epoll instead of io_uring: /d' "$1"; }

# is_silent NAME: it has not complained.
is_silent() { [[ -z $(complaints "$tmp/$1.err") ]]; }

# port_of FILE PID: waits until the program has said "listening on ADDRESS:PORT" there; prints the port.
port_of() {
    local try
    for ((try = 0; try < 500; try++)); do
        if grep -qs '^listening on ' "$1"; then
            sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' "$1"
            return
        fi
        kill -0 "$2" 2>/dev/null || break
        sleep 0.01
    done
    return 1
}

# is_up PORT: somebody listens there.
is_up() {
    local try
    for ((try = 0; try < 500; try++)); do
        [[ -n $(awk -v port=":$(printf %04X "$1")" '$2 ~ port "$" && $4 == "0A"' /proc/net/tcp /proc/net/tcp6) ]] && return
        sleep 0.01
    done
    return 1
}

# free_port: one that nobody listens on now.
free_port() {
    local port
    for ((;;)); do
        port=$((20000 + RANDOM % 12000))
        [[ -z $(awk -v port=":$(printf %04X "$port")" '$2 ~ port "$"' /proc/net/tcp /proc/net/tcp6) ]] && break
    done
    printf '%s\n' "$port"
}

# ends PID: waits for a program of ours; fails after five seconds. Returns its exit status.
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

# expect_status STATUS COMMAND...: the command's output goes to $tmp/said.
expect_status() {
    local wanted=$1 got=0
    shift
    timeout 8 "$@" >"$tmp/everything" 2>&1 </dev/null || got=$?
    complaints "$tmp/everything" >"$tmp/said"
    [[ $got == "$wanted" ]] || fail "$* ended with $got, not $wanted: $(cat "$tmp/said")"
}

# expect_said PATTERN: what $tmp/said has caught is one line, like that.
expect_said() {
    local said
    said=$(complaints "$tmp/said")
    [[ $said != *$'\n'* ]] || fail "not one line: $said"
    grep -q -- "$1" <<<"$said" || fail "expected '$1', got: $said"
}
