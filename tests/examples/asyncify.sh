#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# asyncify: every variant finds the same number, on the expected thread; the ticker runs on except during the plain
# call.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example asyncify

for arguments in "-1" "many" "1 2"; do
    expect_status 2 "$examples/asyncify" $arguments
    expect_said '^usage: asyncify '
done

# number_of WORD NAME: the number before WORD in the line that begins with NAME.
number_of() { sed -nE "s/^$2: .* ([0-9]+) $1.*/\1/p" "$tmp/said"; }
# thread_of NAME
thread_of() { sed -nE "s/^$1: .* on thread ([0-9]+) .*/\1/p" "$tmp/said"; }

expect_status 0 "$examples/asyncify" 300000
[[ $(wc -l <"$tmp/said") == 5 && $(head -n 1 "$tmp/said") == 'the loop is thread 1' ]] || fail "said: $(cat "$tmp/said")"
[[ $(grep -c ' 25997 primes ' "$tmp/said") == 4 ]] || fail "wrong numbers: $(cat "$tmp/said")"
[[ "$(thread_of 'as a call') $(thread_of 'in pieces')" == '1 1' ]] || fail "not on the loop: $(cat "$tmp/said")"
[[ "$(thread_of blocking) $(thread_of 'on an executor')" == '2 3' ]] || fail "on the loop: $(cat "$tmp/said")"
[[ $(number_of 'ticks' 'as a call') == 0 ]] || fail "the ticker ran during the call: $(cat "$tmp/said")"
for how in 'in pieces' blocking 'on an executor'; do
    # On a busy machine ticks are late but continue.
    (($(number_of ticks "$how") * 10 >= $(number_of ms "$how") - 10)) || fail "the ticker stood still: $(cat "$tmp/said")"
done

expect_status 0 "$examples/asyncify" 0
[[ $(grep -c ' 0 primes ' "$tmp/said") == 4 ]] || fail "there is no prime: $(cat "$tmp/said")"
