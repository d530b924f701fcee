#!/bin/bash
# shellcheck disable=SC2086 # lists of arguments are split on purpose
# print_head prints what head(1) prints, for every kind of file.

# shellcheck source=tests/examples/common.bash
. "$(dirname "$0")/common.bash"
need_example print_head

: >"$tmp/empty"
printf 'no newline' >"$tmp/short"
printf 'one\n\n\nfour\n' >"$tmp/four"
seq 100000 >"$tmp/many"
head -c 300000 /dev/urandom >"$tmp/binary"
printf '%0100000d\nnext\nlast' 7 >"$tmp/long"

compare() {
    "$examples/print_head" "$@" >"$tmp/ours" 2>"$tmp/ours.err" || fail "print_head $* ended with $?: $(cat "$tmp/ours.err")"
    head "$@" >"$tmp/theirs"
    cmp "$tmp/ours" "$tmp/theirs" || fail "print_head $* differs from head"
}

cd "$tmp" || exit 1
for file in empty short four many binary long; do
    for amount in "-n 0" "-n 1" "-n 3" "-n 10" "-n 50000" "-c 0" "-c 1" "-c 16384" "-c 100000" ""; do
        compare $amount $file
    done
done
compare -n 2 four empty short many
compare -c 20 four empty short many
compare -n 3 -c 20 many
compare -c 20 -n 3 many
compare -n 5 /proc/self/limits
[[ $("$examples/print_head" -c 1000 /dev/zero | wc -c) == 1000 ]] || fail "/dev/zero"

for i in 1 2 3 4 5; do printf 'line %d\n' $i; sleep 0.05; done | "$examples/print_head" -n 3 - four >ours
printf '==> standard input <==\nline 1\nline 2\nline 3\n\n==> four <==\none\n\n\n' | cmp - ours || fail "standard input"

for arguments in "" "-n" "-n x four" "-n -1 four" "-c 99999999999999999999 four" "-z four"; do
    expect_status 2 "$examples/print_head" $arguments
    grep -q '^usage: ' said || fail "no usage for '$arguments': $(cat said)"
done

# Errors are reported, and the remaining files are printed.
"$examples/print_head" -n 1 missing four . >ours 2>errors
[[ $? == 1 ]] || fail "a missing file was not reported"
[[ $(complaints errors) == $'print_head: missing: No such file or directory\nprint_head: .: Is a directory' ]] || fail "errors: $(<errors)"
grep -qx 'one' ours || fail "nothing printed after an error: $(<ours)"

"$examples/print_head" many >/dev/full 2>errors
[[ $? == 1 && $(complaints errors) == 'print_head: '*'No space left on device' ]] || fail "a full device: $(<errors)"
