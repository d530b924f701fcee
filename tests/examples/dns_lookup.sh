#!/bin/bash
# dns_lookup: names, numeric addresses, the order of the answers, errors, names on the standard input.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example dns_lookup
lookup=$examples/dns_lookup

expect_status 2 "$lookup" --other 1
expect_status 2 "$lookup" --parallel 0 localhost
grep -q '^usage: ' "$tmp/said" || fail "no usage"

# prints EXPECTED STATUS COMMAND...: the output, without errors on stderr unless the status is not 0.
prints() {
    local expected=$1 wanted=$2 got=0
    shift 2
    timeout 50 "$@" >"$tmp/out" 2>"$tmp/err" || got=$?
    [[ $got == "$wanted" ]] || fail "$* ended with $got, not $wanted: $(cat "$tmp/err")"
    [[ $(<"$tmp/out") == "$expected" ]] || fail "$* printed: $(cat "$tmp/out")"
}

# Numeric addresses are answers of their own, in the order of the names.
prints $'127.0.0.1: 127.0.0.1\n::1: ::1\n10.0.0.2: 10.0.0.2' 0 "$lookup" 127.0.0.1 ::1 10.0.0.2
timeout 50 "$lookup" localhost >"$tmp/out" || fail "localhost has no address"
grep -qE '^localhost:( (127\.0\.0\.1|::1))+$' "$tmp/out" || fail "localhost is $(cat "$tmp/out")"

# Names on the standard input, more of them than look-ups at a time; empty lines are not names.
for ((i = 0; i < 200; i++)); do
    printf '10.1.2.%d\n\n' "$i"
done >"$tmp/names"
sed -n 's/^..*$/&: &/p' "$tmp/names" >"$tmp/answers"
prints "$(<"$tmp/answers")" 0 "$lookup" --parallel 3 <"$tmp/names"
prints '' 0 "$lookup" </dev/null

# One name that cannot exist fails alone.
prints $'127.0.0.1: 127.0.0.1\n127.0.0.2: 127.0.0.2' 1 "$lookup" --limit 40000 127.0.0.1 300.300.300.300 127.0.0.2
complaints "$tmp/err" | grep -q '^300\.300\.300\.300: error: ' || fail "the error is $(cat "$tmp/err")"
exit 0
