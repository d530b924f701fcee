# shellcheck shell=bash
# The USDT probes are in the program, and the scripts of tools/bpftrace understand them.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
program=${COIL_PROGRAMS_DIR:-$COIL_EXAMPLES_DIR/../tests}/blocks_its_context
fail() {
    echo "FAIL: $*" >&2
    exit 1
}
skip() {
    echo "SKIP: $*"
    exit 77
}

case $(uname -m) in
    x86_64 | aarch64) ;;
    *) skip "coil has no probes on $(uname -m)" ;;
esac

# ---- the notes in the ELF file, without a tracer

if command -v readelf >/dev/null; then
    notes=$(readelf -n "$program")
    for probe in submit:3 complete:3 resume:2; do
        name=${probe%:*}
        arguments=$(awk -v name="$name" '$1 == "Provider:" { coil = $2 == "coil" }
            $1 == "Name:" { found = coil && $2 == name }
            $1 == "Arguments:" && found { print gsub(/8@/, ""); exit }' <<<"$notes")
        [[ $arguments == "${probe#*:}" ]] || fail "coil:$name has '$arguments' arguments of 8 bytes: $notes"
    done
fi

# ---- with bpftrace

command -v bpftrace >/dev/null || skip "bpftrace is not installed; readelf(1) finds the probes"
bpftrace -e 'BEGIN { exit(); }' >/dev/null 2>&1 || skip "bpftrace is not permitted here; readelf(1) finds the probes"

directory=$(mktemp -d)
coproc server { exec "$program"; }
# shellcheck disable=SC2154 # coproc sets it
pid=$server_PID
finish() {
    kill "$pid" 2>/dev/null || true
    rm -rf "$directory"
}
trap finish EXIT
read -r line <&"${server[0]}"
[[ $line == ready ]] || fail "expected 'ready' from the program: '$line'"

# watch SCRIPT PATTERN: runs the script for a second and looks for the pattern in its output.
watch() {
    local out=$directory/out
    timeout -s INT -k 10 30 bpftrace "$root/tools/bpftrace/$1" -p "$pid" >"$out" 2>&1 &
    local tracer=$!
    for _ in {1..200}; do # until it has attached
        grep -q Attaching "$out" && break
        sleep 0.05
    done
    sleep 1.5
    kill -INT "$tracer" 2>/dev/null || true
    wait "$tracer" || true
    if grep -qE 'uprobe.*(not supported|Permission|Operation not permitted|No such file)' "$out"; then
        skip "the kernel refuses uprobes: $(head -3 "$out")"
    fi
    grep -qE "$2" "$out" || fail "$1 prints: $(cat "$out")"
    kill -0 "$pid" || fail "the program has ended while $1 watched it"
}
watch op-latency.bt '^@microseconds\['
watch slow-resume.bt '^@milliseconds\[works'
